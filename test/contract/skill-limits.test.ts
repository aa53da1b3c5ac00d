/** Limits on the skills of a learner and of a tenant, and removal of skills. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { timeAgo } from '../support/builders/day.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { keysOf, sharedService, startSecondApi } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const perLearner = 5;
const perTenant = 12;
const shared = await sharedService();
const service = await startSecondApi({ after }, shared, { skillLimits: { perLearner, perTenant } });
const keys = await keysOf({ after }, shared);

let tenants = 0;
async function freshTenant() {
  tenants += 1;
  const caller = callerOf(service, await keys.add({ tenant: `school-${tenants}` }));
  return {
    caller,
    listSkills: async (): Promise<string[]> => {
      const { json } = await caller.get('/api/v1/skills?limit=1000');
      return valuesOf(json.data.skills, 'skill_id');
    },
    putSkill: (skill: string, body: object = {}) => caller.send('PUT', `/api/v1/skills/${skill}`, body),
  };
}

const answer = (user_id: string, skill_id: string, more: object = {}) =>
  event({ user_id, skill_id, ...more });
const answers = (user_id: string, count: number, name = 's') =>
  Array.from({ length: count }, (_, i) => answer(user_id, `${name}${i}`));
const limitExceeded = '422 LIMIT_EXCEEDED';

test('track-answers limits the skills of a learner exactly, and a rejected answer stores nothing', async () => {
  const { caller, listSkills } = await freshTenant();
  const { status, json } = await caller.trackAll([
    ...answers('ada', perLearner + 2),
    answer('ada', 's0'),
    answer('eve', 'x'),
  ]);
  assert.equal(status, 207);
  assert.deepEqual(valuesOf(json.data.results, 'status'), [200, 200, 200, 200, 200, 422, 422, 200, 200]);
  assert.equal(json.data.results[5].error.code, 'LIMIT_EXCEEDED');
  assert.deepEqual(await listSkills(), ['s0', 's1', 's2', 's3', 's4', 'x']);
  assert.equal(outcomeOf(await caller.track(answer('ada', 'more'))), limitExceeded);
  assert.equal((await caller.track(answer('ada', 's4'))).status, 200);
  const { data } = (await caller.get('/api/v1/mastery/ada')).json;
  assert.equal(data.skills.length, perLearner);
  assert.ok(!(await listSkills()).includes('more'));
  const none = await caller.trackAll([answer('ada', 'more'), answer('ada', 'even more')]);
  assert.equal(outcomeOf(none), '400 INVALID_REQUEST');
  assert.equal(none.json.error.details[1].path, 'events/1/skill_id');
});

test('track-answer counts each skill of a question towards both limits', async () => {
  const { caller, listSkills } = await freshTenant();
  const send = async (user: string, skill_ids: readonly string[], more: object = {}) =>
    outcomeOf(await caller.track(event({ user_id: user, skill_id: null, skill_ids, ...more })));
  assert.equal(await send('ada', ['s0', 's1', 's2', 's3']), '200');
  assert.equal(await send('ada', ['s0', 's4', 's5'], { event_id: 'e' }), limitExceeded);
  assert.deepEqual(await listSkills(), ['s0', 's1', 's2', 's3'], 'a rejected answer stores nothing');
  assert.equal(await send('ada', ['s4', 's0'], { event_id: 'e' }), '200', 'the id is still free');
  assert.equal(await send('ada', ['s4', 's1', 's0']), '200');
  const batch = [['s1', 's2'], ['s1', 'x'], ['s4']].map((skill_ids) =>
    event({ user_id: 'ada', skill_id: null, skill_ids }),
  );
  const { json } = await caller.trackAll(batch);
  assert.deepEqual(valuesOf(json.data.results, 'status'), [200, 422, 200]);
  const { data } = (await caller.get('/api/v1/mastery/ada')).json;
  assert.deepEqual(valuesOf(data.skills, 'total_attempts').sort(), [1, 2, 3, 3, 3]);
  for (const user of ['u1', 'u2', 'u3']) {
    const skills = [`${user}-a`, `${user}-b`];
    assert.equal(await send(user, [...skills, 's0']), '200');
  }
  assert.equal(await send('u4', ['s0', 'new-1', 'new-2']), limitExceeded);
  assert.equal((await listSkills()).length, perTenant - 1);
  assert.equal(await send('u4', ['s0', 'new-1']), '200');
});

test('Concurrent answers and settings exceed neither limit', async () => {
  const { caller, listSkills, putSkill } = await freshTenant();
  await caller.trackAll(answers('ada', perLearner - 1));
  const tracked = await Promise.all(
    Array.from({ length: 6 }, (_, i) => caller.track(answer('ada', `t${i}`))),
  );
  assert.deepEqual(tracked.map(({ status }) => status).sort(), [200, 422, 422, 422, 422, 422]);
  const count = perTenant - perLearner;
  const put = await Promise.all(Array.from({ length: count + 8 }, (_, i) => putSkill(`p${i}`)));
  assert.equal(put.filter(({ status }) => status === 200).length, count);
  assert.equal(put.filter(({ status }) => status === 422).length, 8);
  assert.equal((await listSkills()).length, perTenant);
});

test('track-answer limits the skills of a tenant and checks repeated ids first', async () => {
  const { caller, listSkills, putSkill } = await freshTenant();
  const first = await caller.track(answer('u0', 's0', { event_id: 'first' }));
  for (let user = 0; user < 4; user++) await caller.trackAll(answers(`u${user}`, 4, `s${user}-`));
  assert.equal((await listSkills()).length, perTenant);
  assert.equal(outcomeOf(await caller.track(answer('u9', 'more', { event_id: 'new' }))), limitExceeded);
  const again = await caller.track(answer('u0', 's0', { event_id: 'first' }));
  assert.deepEqual([again.status, again.json.data], [200, first.json.data]);
  assert.equal(
    (await caller.track(answer('u9', 's0'))).status,
    200,
    'new learners can start existing skills',
  );
  const reused = await caller.track(answer('u0', 'another', { event_id: 'first' }));
  assert.equal(outcomeOf(reused), '422 IDEMPOTENCY_KEY_REUSED');
  assert.equal(outcomeOf(await putSkill('more')), limitExceeded);
  assert.equal((await putSkill('s0')).status, 200);
  assert.equal((await listSkills()).length, perTenant);
});

test('DELETE removes a skill with fewer than 20 answers, which makes room for another', async () => {
  const { caller, listSkills, putSkill } = await freshTenant();
  const remove = (skill: string, headers = {}) =>
    askInTurn(() => caller.send('DELETE', `/api/v1/skills/${skill}`, undefined, headers));
  await putSkill('set', { name: 'Ä typo', section: 'math', weight: 3 });
  await caller.trackAll(Array.from({ length: 20 }, (_, user) => answer(`u${user}`, 'often')));
  await caller.trackAll([...answers('ada', perLearner), ...answers('eve', perLearner, 'e')]);
  const tracked = await caller.track(answer('max', 'new'));
  assert.equal(outcomeOf(tracked), limitExceeded, 'the tenant has not reached its limit');
  assert.equal(outcomeOf(await remove('unknown')), '404 SKILL_NOT_FOUND');
  assert.equal(
    outcomeOf(await remove('often')),
    '409 CONFLICT',
    'answers that are not stored yet are ignored',
  );
  assert.equal((await remove('set', { 'If-Match': '"9"' })).status, 412);
  assert.equal((await remove('set')).status, 200);
  assert.equal((await caller.get('/api/v1/skills/set')).status, 404);
  assert.equal((await remove('s0')).status, 200);
  assert.ok(!(await listSkills()).some((name) => name === 'set' || name === 's0'));
  const { data } = (await caller.get('/api/v1/mastery/ada')).json;
  assert.equal(data.skills.length, perLearner, 'the answers are gone');
  for (const [user, skill] of Object.entries({ ada: 's0', max: 'new' }))
    assert.equal((await caller.track(answer(user, skill))).status, 200, skill);
  assert.equal(outcomeOf(await remove('set')), '404 SKILL_NOT_FOUND');
});

test('GET mastery returns the same skills in pages and as a whole', async () => {
  const { caller } = await freshTenant();
  // Long ago, so that mastery does not change between two reads.
  await caller.trackAll(answers('ada', perLearner).map((one) => ({ ...one, occurred_at: timeAgo(300) })));
  const path = '/api/v1/mastery/ada';
  const whole = (await caller.get(path)).json.data;
  const first = (await caller.get(`${path}?limit=3`)).json.data;
  const rest = (await caller.get(`${path}?limit=3&cursor=${first.next_cursor}`)).json.data;
  assert.deepEqual([whole.next_cursor, rest.next_cursor], [null, null]);
  assert.deepEqual([...first.skills, ...rest.skills], whole.skills);
  assert.deepEqual((await caller.get(`${path}?cursor=${first.next_cursor}`)).json.data, rest);
});
