/** How many skills a learner and a tenant may have, and how one is taken off. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { registeredSkillsKey } from '../../src/store/redis/keys.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { callerOf, event } from '../support/http/http.js';
import { keysOf, redisOf, startService } from '../support/servers/service.js';

const perLearner = 5;
const perTenant = 12;
const service = await startService({ after }, { skillLimits: { perLearner, perTenant } });
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);

let tenants = 0;
async function tenantOf() {
  tenants += 1;
  const tenant = `school-${tenants}`;
  const caller = callerOf(service, await keys.add({ tenant }));
  const known = async (): Promise<string[]> =>
    (await caller.get('/api/v1/skills?limit=1000')).json.data.skills.map(
      ({ skill_id }: { skill_id: string }) => skill_id,
    );
  return { tenant, caller, known };
}

const on = (user_id: string, skill_id: string, more: object = {}) => event({ user_id, skill_id, ...more });
const many = (user_id: string, count: number, name = 's') =>
  Array.from({ length: count }, (_, i) => on(user_id, `${name}${i}`));

const refusal = ({ status, json }: { status: number; json: { error?: { code: string } } }) => [
  status,
  json.error?.code,
];

test("a learner's skills: exactly as many as may be, however they come, and a refused one leaves nothing", async () => {
  const { caller, known } = await tenantOf();
  const { status, json } = await caller.trackAll([
    ...many('ada', perLearner + 2),
    on('ada', 's0'),
    on('eve', 'x'),
  ]);
  assert.equal(status, 207);
  const statuses = json.data.results.map((result: { status: number }) => result.status);
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 422, 422, 200, 200]);
  assert.equal(json.data.results[5].error.code, 'LIMIT_EXCEEDED');
  assert.deepEqual(await known(), ['s0', 's1', 's2', 's3', 's4', 'x']);
  assert.deepEqual(refusal(await caller.track(on('ada', 'more'))), [422, 'LIMIT_EXCEEDED']);
  assert.equal(
    (await caller.track(on('ada', 's4'))).status,
    200,
    'on skills that were begun the learner goes on',
  );
  const { data } = (await caller.get('/api/v1/mastery/ada')).json;
  assert.equal(data.skills.length, perLearner);
  assert.ok((await known()).every((name) => name !== 'more'));
  const none = await caller.trackAll([on('ada', 'more'), on('ada', 'yet more')]);
  assert.deepEqual(refusal(none), [400, 'INVALID_REQUEST']);
  assert.deepEqual(none.json.error.details[1].path, 'events/1/skill_id');
});

test('answers of one learner at once never pass the bound', async () => {
  const { caller } = await tenantOf();
  await caller.trackAll(many('ada', perLearner - 1));
  const told = await Promise.all(Array.from({ length: 6 }, (_, i) => caller.track(on('ada', `late ${i}`))));
  assert.deepEqual(told.map(({ status }) => status).sort(), [200, 422, 422, 422, 422, 422]);
});

test("a tenant's skills; a replayed id is answered before the bound is looked at", async () => {
  const { caller, known } = await tenantOf();
  const first = await caller.track(on('u0', 's0', { event_id: 'first' }));
  for (let user = 0; user < 4; user++) await caller.trackAll(many(`u${user}`, 4, `s${user}-`));
  assert.equal((await known()).length, perTenant);
  assert.deepEqual(refusal(await caller.track(on('u9', 'one more', { event_id: 'refused' }))), [
    422,
    'LIMIT_EXCEEDED',
  ]);
  const again = await caller.track(on('u0', 's0', { event_id: 'first' }));
  assert.deepEqual([again.status, again.json.data], [200, first.json.data]);
  assert.equal((await caller.track(on('u9', 's0'))).status, 200, 'known skills may be begun');
  const reused = await caller.track(on('u0', 'another', { event_id: 'first' }));
  assert.deepEqual(refusal(reused), [422, 'IDEMPOTENCY_KEY_REUSED']);
  assert.equal((await known()).length, perTenant);
  const put = await caller.call({ method: 'PUT', path: '/api/v1/skills/one%20more', body: '{}' });
  assert.deepEqual(refusal(put), [422, 'LIMIT_EXCEEDED']);
  assert.equal((await caller.call({ method: 'PUT', path: '/api/v1/skills/s0', body: '{}' })).status, 200);
});

test('a PUT that is refused leaves no name', async () => {
  const { caller, known } = await tenantOf();
  await caller.track(on('ada', 'a'));
  const headers = { 'If-Match': '"7"' };
  for (const skill of ['a', 'b']) {
    const refused = await caller.call({
      method: 'PUT',
      path: `/api/v1/skills/${skill}`,
      headers,
      body: '{}',
    });
    assert.equal(refused.status, 412);
  }
  assert.deepEqual(await known(), ['a']);
});

test('skills that are set at once never pass the bound', async () => {
  const { caller, known } = await tenantOf();
  const set = (i: number) =>
    caller.call({ method: 'PUT', path: `/api/v1/skills/s${i}`, body: JSON.stringify({ name: `s${i}` }) });
  const told = await Promise.all(Array.from({ length: perTenant + 8 }, (_, i) => set(i)));
  assert.deepEqual(
    told.map(({ status }) => status).filter((status) => status !== 200),
    Array.from({ length: 8 }, () => 422),
  );
  assert.equal((await known()).length, perTenant);
});

test('a skill with few answers is taken off, set or not, and makes room; one with twenty stays', async () => {
  const { caller, known } = await tenantOf();
  const remove = (skill: string, headers = {}) => {
    const path = `/api/v1/skills/${encodeURIComponent(skill)}`;
    return askInTurn(() => caller.call({ method: 'DELETE', path, headers }));
  };
  const body = JSON.stringify({ name: 'Ä typo', section: 'math', weight: 3 });
  await caller.call({ method: 'PUT', path: '/api/v1/skills/set', body });
  for (let user = 0; user < 20; user++) await caller.track(on(`u${user}`, 'often'));
  await caller.trackAll(many('ada', perLearner));
  await caller.trackAll(many('eve', perLearner, 'e'));
  assert.equal((await caller.track(on('max', 'new'))).status, 422, 'full');
  assert.equal(refusal(await remove('nothing'))[1], 'SKILL_NOT_FOUND');
  assert.deepEqual(refusal(await remove('often')), [409, 'CONFLICT'], 'answers on their way are waited for');
  assert.equal((await remove('set', { 'If-Match': '"9"' })).status, 412);
  assert.equal((await remove('set')).status, 200);
  assert.equal((await caller.get('/api/v1/skills/set')).status, 404);
  assert.equal((await remove('s0')).status, 200);
  assert.ok(!(await known()).some((name) => name === 'set' || name === 's0'));
  const { data } = (await caller.get('/api/v1/mastery/ada')).json;
  assert.equal(data.skills.length, perLearner, 'the answers stay');
  assert.equal((await caller.track(on('ada', 's0'))).status, 200, 'and the learner goes on');
  assert.equal((await caller.track(on('max', 'new'))).status, 200, 'there is room');
  assert.deepEqual(refusal(await remove('set')), [404, 'SKILL_NOT_FOUND']);
});

test('names are listed in pages, in the order of their bytes', async () => {
  const { tenant, caller, known } = await tenantOf();
  await redis.zadd(registeredSkillsKey(tenant), 0, 'b', 0, 'a', 0, 'é', 0, 'c');
  const page = (await caller.get('/api/v1/skills?limit=3')).json.data;
  assert.deepEqual(
    page.skills.map(({ skill_id }: { skill_id: string }) => skill_id),
    ['a', 'b', 'c'],
  );
  await caller.track(on('ada', 'd'));
  assert.deepEqual(await known(), ['a', 'b', 'c', 'd', 'é']);
});

test('pages of mastery contain the same skills as the whole list', async () => {
  const { caller } = await tenantOf();
  // So long ago that no figure changes between two reads.
  const occurred_at = new Date(Date.now() - 300 * 86_400_000).toISOString();
  await caller.trackAll(many('ada', perLearner).map((one) => ({ ...one, occurred_at })));
  const path = '/api/v1/mastery/ada';
  const whole = (await caller.get(path)).json.data;
  assert.equal(whole.next_cursor, null);
  const first = (await caller.get(`${path}?limit=3`)).json.data;
  const rest = (await caller.get(`${path}?limit=3&cursor=${first.next_cursor}`)).json.data;
  assert.equal(rest.next_cursor, null);
  assert.deepEqual([...first.skills, ...rest.skills], whole.skills);
  assert.deepEqual((await caller.get(`${path}?cursor=${first.next_cursor}`)).json.data, rest);
  for (const bad of ['limit=0', 'limit=1001', 'limit=x', 'cursor=abc', 'limit='])
    assert.deepEqual(refusal(await caller.get(`${path}?${bad}`)), [400, 'INVALID_REQUEST'], bad);
});
