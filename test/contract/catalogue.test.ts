/** Setting skills: the whole entry, conditions on its tag, and when everybody sees it. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { catalogueKey, catalogueRevisionsKey } from '../../src/store/redis/keys.js';
import { awayFromMidnight } from '../support/builders/day.js';
import {
  type Caller,
  callerOf,
  event,
  type JsonAnswer,
  jsonOf,
  type RequestParts,
} from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const second = await service.second();

/** A caller of a tenant of its own. */
const tenantCaller = async (tenant: string): Promise<Caller> => callerOf(service, await keys.add({ tenant }));
const caller = await tenantCaller('school');

beforeEach(awayFromMidnight);

const path = (skillId: string): string => `/api/v1/skills/${encodeURIComponent(skillId)}`;

async function put(
  skillId: string,
  body: unknown,
  headers: RequestParts['headers'] = {},
  by = caller,
): Promise<JsonAnswer> {
  const answer = await by.raw({ method: 'PUT', path: path(skillId), body: JSON.stringify(body), headers });
  return { ...answer, json: jsonOf(answer) };
}
const get = (skillId: string, by = caller): Promise<JsonAnswer> => by.get(path(skillId));
const told = ({ status, json }: JsonAnswer): [number, string] => [status, json.error?.code];

const manual = { p_init: 0.4, p_learn: 0.05, p_guess: 0.25, p_slip: 0.1, p_forget: 0.02 };
const defaults = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1, p_forget: 0, source: 'default' };

test('an entry is replaced as a whole', async () => {
  assert.deepEqual(told(await get('a/b')), [404, 'SKILL_NOT_FOUND']);
  const body = { name: 'Lineare Gleichungen 🙂', section: 'math', weight: 2.5, parameters: manual };
  const set = await put('a/b', body);
  assert.equal(set.status, 200);
  const { updated_at, parameters } = set.json.data;
  assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
  assert.deepEqual(parameters, { ...manual, source: 'manual', version: parameters.version, fitted_at: null });
  assert.deepEqual(set.json.data, {
    skill_id: 'a/b',
    ...body,
    parameters,
    origin: 'manual',
    learners: 0,
    answers: 0,
    rapid_threshold_seconds: 3,
    typical_seconds: null,
    updated_at,
    model_version: 0,
  });
  const read = await get('a/b');
  assert.deepEqual(read.json.data, set.json.data);
  assert.equal(read.headers.etag, `"${parameters.version}"`);
  assert.equal(set.headers.etag, read.headers.etag);

  const cleared = await put('a/b', { name: null });
  const { name, section, weight, origin } = cleared.json.data;
  assert.deepEqual([name, section, weight, origin], [null, null, 1, 'defaults']);
  assert.deepEqual(cleared.json.data.parameters, { ...defaults, version: 0, fitted_at: null });
  assert.equal(cleared.headers.etag, `"${parameters.version + 1}"`);
});

test('what GET gave may be sent back, and changes nothing but the tag', async () => {
  await caller.track(event({ skill_id: 'answered' }));
  await put('set', { name: 'Set', section: 'rw', weight: 0.5, parameters: { ...manual, p_learn: 0.123456 } });
  for (const skillId of ['answered', 'set']) {
    const before = (await get(skillId)).json.data;
    const answer = await put(skillId, before);
    assert.equal(answer.status, 200, answer.text);
    const { updated_at: _, parameters, ...after } = answer.json.data;
    const { updated_at: __, parameters: old, ...same } = before;
    assert.deepEqual(after, same);
    assert.deepEqual({ ...parameters, version: 0 }, { ...old, version: 0 });
  }
  assert.equal((await get('set')).json.data.parameters.p_learn, 0.1235);
  // What is not manual is no setting, whatever else it says.
  const fitted = { ...manual, p_guess: 7, source: 'fitted', version: 3, fitted_at: '2026-05-31T12:00:00Z' };
  assert.equal((await put('set', { parameters: fitted })).json.data.parameters.source, 'default');
});

const withParameters = (change: object) => ({ parameters: { ...manual, ...change } });

const bad: readonly (readonly [unknown, string, RegExp])[] = [
  [{ section: 'maths' }, 'section', /math, rw/],
  [{ section: '' }, 'section', /math, rw/],
  [{ weight: 0 }, 'weight', />= 0\.000001/],
  [{ weight: -1 }, 'weight', />=/],
  [{ weight: 1000.1 }, 'weight', /<= 1000/],
  [{ weight: '1' }, 'weight', /number/],
  [{ name: '' }, 'name', /1 char/],
  [{ name: 'x'.repeat(201) }, 'name', /200 char/],
  [{ name: 'a\nb' }, 'name', /control/],
  [{ name: 5 }, 'name', /string/],
  [{ parameters: 'manual' }, 'parameters', /object/],
  [{ parameters: { source: 'guessed' } }, 'parameters/source', /default, fitted, manual/],
  [{ parameters: { ...manual, p_slip: undefined } }, 'parameters/p_slip', /required/],
  [withParameters({ p_slip: null }), 'parameters/p_slip', /number/],
  [withParameters({ p_init: 0 }), 'parameters/p_init', />= 0\.001/],
  [withParameters({ p_init: 1 }), 'parameters/p_init', /<= 0\.999/],
  [withParameters({ p_guess: 0.6, p_slip: 0.36 }), 'parameters/p_slip', /at most 0\.35/],
  [withParameters({ p_init: 0.05 }), 'parameters/p_learn', /below 0\.039/],
  [withParameters({ p_forget: 0.05 }), 'parameters/p_forget', /at most 0\.0368: .* mastery of 0\.95/],
  [withParameters({ p_forget: 0.11 }), 'parameters/p_forget', /<= 0\.1/],
  [withParameters({ p_forget: -0.01 }), 'parameters/p_forget', />= 0/],
  [[], '', /object/],
  [7, '', /object/],
];

test('bodies that set nothing', async () => {
  for (const [body, field, message] of bad) {
    const answer = await put('bad', body);
    assert.deepEqual(told(answer), [400, 'INVALID_REQUEST'], JSON.stringify(body));
    const [problem, ...others] = answer.json.error.details;
    assert.deepEqual([problem.path, others], [field, []], JSON.stringify(body));
    assert.match(problem.message, message);
  }
  assert.deepEqual(told(await get('bad')), [404, 'SKILL_NOT_FOUND']);
});

test('bounds', async () => {
  for (const body of [
    { name: '😀'.repeat(200), weight: 1000 },
    { weight: 0.000001 },
    withParameters({ p_init: 0.999, p_learn: 0.001, p_guess: 0.001, p_slip: 0.949, p_forget: 0.03 }),
    withParameters({ p_init: 0.999, p_learn: 0.08, p_guess: 0.45, p_slip: 0.45, p_forget: 0 }),
    {},
  ]) {
    const answer = await put('bounds', body);
    assert.equal(answer.status, 200, answer.text);
  }
});

test('If-Match: only what the caller has seen is replaced', async () => {
  for (const tag of ['"0"', '*', '"1"']) {
    assert.deepEqual(
      told(await put('conditional', {}, { 'If-Match': tag })),
      [412, 'PRECONDITION_FAILED'],
      tag,
    );
  }
  assert.deepEqual(told(await get('conditional')), [404, 'SKILL_NOT_FOUND']);
  await caller.track(event({ skill_id: 'conditional' }));
  assert.equal((await get('conditional')).headers.etag, '"0"');
  assert.equal((await put('conditional', {}, { 'If-Match': '"1"' })).status, 412);
  const first = await put('conditional', {}, { 'If-Match': '"0"' });
  assert.equal(first.status, 200);
  assert.equal((await put('conditional', {}, { 'If-Match': '"0"' })).status, 412);
  const tag = first.headers.etag as string;
  assert.equal((await put('conditional', {}, { 'If-Match': `W/${tag}` })).status, 412);
  assert.equal((await put('conditional', {}, { 'If-Match': `"0", ${tag}` })).status, 200);
  assert.equal((await put('conditional', {}, { 'If-Match': '*' })).status, 200);
  assert.deepEqual(told(await put('conditional', {}, { 'If-Match': tag })), [412, 'PRECONDITION_FAILED']);
  assert.equal((await put('conditional', {}, { 'If-Match': 'x' })).status, 400);
});

test('of twenty writers with the same tag one wins', async () => {
  const tag = (await put('contested', {})).headers.etag as string;
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => put('contested', { section: 'rw' }, { 'If-Match': tag })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ status }) => status === 412).length, 19);
});

test('skills that were set stand in the list, of their tenant alone', async () => {
  const other = await tenantCaller('other');
  await put('z', { section: 'math' }, {}, other);
  await put('__proto__', { name: 'Prototype' }, {}, other);
  const { skills } = (await other.get('/api/v1/skills')).json.data;
  const shown = skills.map((skill: Record<string, unknown>) => [skill.skill_id, skill.name, skill.section]);
  assert.deepEqual(shown, [
    ['__proto__', 'Prototype', null],
    ['z', null, 'math'],
  ]);
  assert.deepEqual(told(await get('z')), [404, 'SKILL_NOT_FOUND']);
});

test('scopes', async () => {
  const limited = callerOf(service, await keys.add({ scopes: ['read', 'write'] }));
  assert.deepEqual(told(await put('x', {}, {}, limited)), [403, 'FORBIDDEN']);
  const admin = callerOf(service, await keys.add({ tenant: 'school', scopes: ['admin'] }));
  assert.equal((await put('x', {}, {}, admin)).status, 200);
  assert.deepEqual(told(await get('x', admin)), [403, 'FORBIDDEN']);
  assert.deepEqual(told(await put('x', {}, {}, callerOf(service, null))), [401, 'UNAUTHORIZED']);
});

test('sections and parameters count from the next answer on, in every process', async () => {
  const key = await keys.add({ tenant: 'spread' });
  const [here, there] = [callerOf(service, key), callerOf(second, key)];
  const sectionOf = async (by: Caller): Promise<unknown> =>
    (await by.get('/api/v1/mastery/ada/skill')).json.data.section;
  // Everybody has the catalogue as it was.
  for (const by of [here, there]) await by.track(event({ user_id: 'ada', skill_id: 'skill' }));
  assert.deepEqual([await sectionOf(here), await sectionOf(there)], [null, null]);
  for (let i = 1; i <= 10; i++) {
    const [setter, other] = i % 2 === 0 ? [here, there] : [there, here];
    const section = i % 3 === 0 ? 'math' : 'rw';
    const parameters = { ...manual, p_init: (40 + i) / 100 };
    assert.equal((await put('skill', { section, parameters }, {}, setter)).status, 200);
    for (const by of [other, setter]) {
      // A new learner starts at p_init, so the answer tells which parameters it was counted with.
      const answer = await by.track(event({ skill_id: 'skill' }));
      assert.equal(answer.json.data.mastery_before, parameters.p_init, `change ${i}`);
      assert.equal(await sectionOf(by), section);
      const { explanation } = (await by.get('/api/v1/mastery/ada/skill?explain=true')).json.data;
      assert.equal(explanation.parameters.p_init, parameters.p_init);
    }
  }
});

test('sections and weights count in the next prediction, in every process', async () => {
  const key = await keys.add({ tenant: 'predicted' });
  const [here, there] = [callerOf(service, key), callerOf(second, key)];
  const answers = (skill_id: string, is_correct: boolean) =>
    Array.from({ length: 30 }, () => event({ user_id: 'ada', skill_id, is_correct }));
  await here.trackAll([...answers('strong', true), ...answers('weak', false)]);
  const mathOf = async (by: Caller): Promise<number> =>
    (await by.get('/api/v1/predictions/ada')).json.data.current_math;
  for (const by of [here, there]) await mathOf(by);
  const scores: number[] = [];
  for (const [strong, weak] of [
    [1, 1000],
    [1000, 1],
    [1, 1000],
  ]) {
    await put('strong', { section: 'math', weight: strong }, {}, here);
    await put('weak', { section: 'math', weight: weak }, {}, there);
    const [mine, other] = await Promise.all([mathOf(here), mathOf(there)]);
    assert.equal(mine, other);
    scores.push(mine);
  }
  const [low, high, again] = scores as [number, number, number];
  assert.ok(low < high, `${low} < ${high}`);
  assert.equal(again, low);
});

test('a catalogue of a newer version of the service refuses its own tenant alone', async () => {
  const newer = await tenantCaller('newer');
  const redis = await redisOf({ after }, service.redisUrl);
  await redis.hset(catalogueKey(keys.nameOf('newer')), 'skill', '{"v":2}');
  await redis.hset(catalogueRevisionsKey, keys.nameOf('newer'), '1 1800000000000');
  const track = (by: Caller) => by.track(event({ skill_id: 'skill' }));
  // Answers that come at once are counted in one batch.
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => track(i % 2 === 0 ? caller : newer)),
  );
  answers.forEach((answer, i) => {
    assert.deepEqual(told(answer), i % 2 === 0 ? [200, undefined] : [503, 'UNAVAILABLE'], answer.text);
  });
  assert.deepEqual(told(await get('skill', newer)), [503, 'UNAVAILABLE']);
});
