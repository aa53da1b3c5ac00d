/** The skills of a tenant: the list, one skill, its configuration, and when a change takes effect. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { emptyTimes } from '../../src/domain/tracing/response-times.js';
import { registerSkills } from '../../src/store/catalogue/registered-skills.js';
import { publishModel } from '../../src/store/models/model-store.js';
import { catalogueKey, catalogueRevisionsKey } from '../../src/store/redis/keys.js';
import { awayFromMidnight } from '../support/builders/day.js';
import {
  type Caller,
  callerOf,
  event,
  type JsonAnswer,
  outcomeOf,
  type RequestParts,
} from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const second = await service.second();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const list = callerOf(service, service.key);
const callerIn = async (tenant: string): Promise<Caller> => callerOf(service, await keys.add({ tenant }));
const caller = await callerIn('school');

beforeEach(awayFromMidnight);

const path = (skillId: string): string => `/api/v1/skills/${encodeURIComponent(skillId)}`;
const put = (skillId: string, body: unknown, headers: RequestParts['headers'] = {}, by = caller) =>
  by.send('PUT', path(skillId), body, headers);
const get = (skillId: string, by = caller): Promise<JsonAnswer> => by.get(path(skillId));
const unknownSkill = '404 SKILL_NOT_FOUND';
const mismatch = '412 PRECONDITION_FAILED';

const odd = ['a/b', '%2F', '...', '😀', '\uffee', 'é', 'e\u0301', ' ', '__proto__', "'; --", 'x'.repeat(128)];
const skillIds = [...odd, ...Array.from({ length: 109 }, (_, i) => `skill-${i}`)];
const inOrder = [...skillIds].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
const answers = skillIds.map((skill_id, i) => event({ user_id: `learner-${i % 5}`, skill_id }));
assert.equal((await list.trackAll(answers)).status, 200);

const manual = { p_init: 0.4, p_learn: 0.05, p_guess: 0.25, p_slip: 0.1, p_forget: 0.02 };
const defaults = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1, p_forget: 0, source: 'default' };

test('GET /skills returns each skill once in pages of any size, in the order of UTF-8 bytes', async () => {
  const read = (query: string) => list.get(`/api/v1/skills${query}`);
  for (const limit of [1000, 120, 119, 7]) {
    const pages = await readPages<{ skill_id: string }>(read, 'skills', limit);
    assert.ok(pages.every((page) => page.length <= limit));
    assert.deepEqual(valuesOf(pages.flat(), 'skill_id'), inOrder, `limit ${limit}`);
  }
  const first = (await read('')).json.data;
  assert.deepEqual([first.skills.length, first.model_version], [100, 0]);
  assert.equal((await read(`?cursor=${first.next_cursor}&limit=1000`)).json.data.skills.length, 20);
});

test('GET /skills and GET /skills/{skill_id} return the same fields of an unconfigured skill', async () => {
  const [skill] = (await list.get('/api/v1/skills?limit=1')).json.data.skills;
  assert.deepEqual(skill, {
    ...{ skill_id: ' ', name: null, section: null, weight: 1 },
    parameters: { ...defaults, version: 0, fitted_at: null },
    ...{ origin: 'defaults', learners: 0, answers: 0, rapid_threshold_seconds: 3 },
    ...{ typical_seconds: null, updated_at: null },
  });
  assert.deepEqual((await get(' ', list)).json.data, { ...skill, model_version: 0 });
});

test('GET /skills/{skill_id} compares ids byte by byte', async () => {
  for (const skillId of odd) assert.equal((await get(skillId, list)).json.data?.skill_id, skillId);
  for (const skillId of ['skill-109', 'SKILL-1', 'a%2Fb'])
    assert.equal(outcomeOf(await get(skillId, list)), unknownSkill, skillId);
});

test('GET /skills returns only the skills of the calling tenant', async () => {
  const other = await callerIn('other');
  const none = await other.get('/api/v1/skills');
  assert.deepEqual(none.json.data, { skills: [], next_cursor: null, model_version: 0 });
  assert.equal(outcomeOf(await get('skill-1', other)), unknownSkill);
  await other.track(event({ skill_id: 'own' }));
  await put('__proto__', { name: 'Prototype' }, {}, other);
  await put('z', { section: 'math' }, {}, other);
  const { skills } = (await other.get('/api/v1/skills')).json.data;
  const found = skills.map(
    (skill: Record<string, unknown>) => `${skill.skill_id} ${skill.name} ${skill.section}`,
  );
  assert.deepEqual(found, ['__proto__ Prototype null', 'own null null', 'z null math']);
  assert.equal(outcomeOf(await get('z', list)), unknownSkill);
});

const fittedAt = '2026-05-31T12:00:00.000Z';
const prior = { pInit: 0.45, pLearn: 0.123456, pGuess: 0.25, pSlip: 0.08, pForget: 0 };
const fitted: SkillModel = {
  ...resolveSkillModel(unfittedModel, 'any'),
  parameters: { pInit: 0.61, pLearn: 0.05, pGuess: 0.3, pSlip: 0.12, pForget: 0.02 },
  ...{ source: 'fitted', version: 7, fittedAt, learners: 230, answers: 4100, difficultyMean: 0 },
  times: { answers: 4000, meanSeconds: 60, logMean: Math.log(50), logM2: 900, correct: 3000 },
};

test('GET /skills returns the active parameters of each skill and their source after a fit', async () => {
  const skillModels = new Map<string, SkillModel>([
    ['fitted', fitted],
    ['kept', { ...fitted, version: 3 }],
    ['set', { ...fitted, source: 'manual', times: emptyTimes }],
  ]);
  const tenant = keys.nameOf('fitted');
  const model = encodeModel({ ...unfittedModel, version: 7, fittedAt, prior, skills: skillModels });
  const publication = { tenant, version: 7, basedOn: 0, publishedAt: Date.now() };
  assert.ok(await publishModel(redis, { ...publication, model, report: '{}', items: null }));
  await registerSkills(redis, tenant, [...skillModels.keys()]);
  const school = await callerIn('fitted');
  assert.equal((await school.track(event({ user_id: 'ada', skill_id: 'new' }))).status, 200);
  const { skills, model_version } = (await school.get('/api/v1/skills')).json.data;
  assert.equal(model_version, 7);
  const origins = skills.map(({ skill_id, origin, parameters: { source, version } }: JsonAnswer['json']) =>
    [skill_id, origin, source, version].join(' '),
  );
  const expected = [
    'fitted fit fitted 7',
    'kept fit fitted 3',
    'new tenant_prior default 7',
    'set manual manual 7',
  ];
  assert.deepEqual(origins, expected);
  const chances = { p_init: 0.61, p_learn: 0.05, p_guess: 0.3, p_slip: 0.12, p_forget: 0.02 };
  assert.deepEqual(skills[0].parameters, { ...chances, source: 'fitted', version: 7, fitted_at: fittedAt });
  assert.deepEqual([skills[0].learners, skills[0].answers], [230, 4100]);
  // A tenth of 60 s; the median of 4,000 times is hardly drawn to the general 75 s.
  assert.deepEqual([skills[0].rapid_threshold_seconds, skills[0].typical_seconds], [6, 50.1]);
  assert.equal(skills[2].parameters.p_learn, 0.1235);
  assert.equal(skills[3].typical_seconds, null);
  const { explanation } = (await school.get('/api/v1/mastery/ada/new?explain=true')).json.data;
  assert.deepEqual(explanation.parameters, skills[2].parameters);
});

test('PUT /skills/{skill_id} replaces the whole entry', async () => {
  assert.equal(outcomeOf(await get('a/b')), unknownSkill);
  const body = { name: 'Lineare Gleichungen 🙂', section: 'math', weight: 2.5, parameters: manual };
  const set = await put('a/b', body);
  assert.equal(set.status, 200);
  const { updated_at, parameters } = set.json.data;
  assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
  assert.deepEqual(set.json.data, {
    ...{ skill_id: 'a/b', ...body, origin: 'manual', learners: 0, answers: 0, rapid_threshold_seconds: 3 },
    parameters: { ...manual, source: 'manual', version: parameters.version, fitted_at: null },
    ...{ typical_seconds: null, updated_at, model_version: 0 },
  });
  const read = await get('a/b');
  assert.deepEqual(read.json.data, set.json.data);
  assert.deepEqual([set.headers.etag, read.headers.etag], Array(2).fill(`"${parameters.version}"`));

  const cleared = await put('a/b', { name: null });
  const { name, section, weight, origin } = cleared.json.data;
  assert.deepEqual([name, section, weight, origin], [null, null, 1, 'defaults']);
  assert.deepEqual(cleared.json.data.parameters, { ...defaults, version: 0, fitted_at: null });
  assert.equal(cleared.headers.etag, `"${parameters.version + 1}"`);
});

test('PUT /skills/{skill_id} accepts the result of GET and changes only the version', async () => {
  await caller.track(event({ skill_id: 'answered' }));
  await put('set', { name: 'Set', section: 'rw', weight: 0.5, parameters: { ...manual, p_learn: 0.123456 } });
  for (const skillId of ['answered', 'set']) {
    const before = (await get(skillId)).json.data;
    const answer = await put(skillId, before);
    assert.equal(answer.status, 200, answer.text);
    const { updated_at, parameters } = answer.json.data;
    const version = { ...before.parameters, version: parameters.version };
    assert.deepEqual(answer.json.data, { ...before, updated_at, parameters: version });
  }
  assert.equal((await get('set')).json.data.parameters.p_learn, 0.1235);
  // Only the source `manual` configures parameters, so the values of another source are not checked.
  const other = { ...manual, p_guess: 7, source: 'fitted', version: 3, fitted_at: '2026-05-31T12:00:00Z' };
  assert.equal((await put('set', { parameters: other })).json.data.parameters.source, 'default');
});

const withParameters = (change: object) => ({ parameters: { ...manual, ...change } });

const invalidBodies: readonly (readonly [unknown, string, RegExp])[] = [
  [{ section: 'maths' }, 'section', /math, rw/],
  [{ weight: 0 }, 'weight', />= 0\.000001/],
  [{ weight: 1000.1 }, 'weight', /<= 1000/],
  [{ weight: '1' }, 'weight', /number/],
  [{ name: '' }, 'name', /1 char/],
  [{ name: 'x'.repeat(201) }, 'name', /200 char/],
  [{ name: 'a\nb' }, 'name', /control/],
  [{ parameters: 'manual' }, 'parameters', /object/],
  [{ parameters: { source: 'guessed' } }, 'parameters/source', /default, fitted, manual/],
  [{ parameters: { ...manual, p_slip: undefined } }, 'parameters/p_slip', /required/],
  [withParameters({ p_slip: null }), 'parameters/p_slip', /number/],
  [withParameters({ p_init: 0 }), 'parameters/p_init', />= 0\.001/],
  [withParameters({ p_init: 1 }), 'parameters/p_init', /<= 0\.999/],
  [withParameters({ p_guess: 0.6, p_slip: 0.36 }), 'parameters/p_slip', /at most 0\.35/],
  [withParameters({ p_init: 0.05 }), 'parameters/p_learn', /below 0\.039/],
  [withParameters({ p_forget: 0.05 }), 'parameters/p_forget', /at most 0\.0368: .* mastery to 0\.95/],
  [withParameters({ p_forget: 0.11 }), 'parameters/p_forget', /<= 0\.1/],
  [[], '', /object/],
];

test('PUT /skills/{skill_id} rejects values out of range and names the field', async () => {
  for (const [body, field, message] of invalidBodies) {
    const answer = await put('bad', body);
    assert.equal(outcomeOf(answer), '400 INVALID_REQUEST', JSON.stringify(body));
    const [problem, ...others] = answer.json.error.details;
    assert.deepEqual([problem.path, others], [field, []], JSON.stringify(body));
    assert.match(problem.message, message);
  }
  assert.equal(outcomeOf(await get('bad')), unknownSkill);
  for (const body of [
    { name: '😀'.repeat(200), weight: 1000 },
    { weight: 0.000001 },
    withParameters({ p_init: 0.999, p_learn: 0.001, p_guess: 0.001, p_slip: 0.949, p_forget: 0.03 }),
    withParameters({ p_init: 0.999, p_learn: 0.08, p_guess: 0.45, p_slip: 0.45, p_forget: 0 }),
    {},
  ])
    assert.equal((await put('limits', body)).status, 200, JSON.stringify(body));
});

test('PUT /skills/{skill_id} compares If-Match with the current version, also for concurrent writes', async () => {
  const putIf = async (tag: string) => outcomeOf(await put('conditional', {}, { 'If-Match': tag }));
  for (const tag of ['"0"', '*', '"1"']) assert.equal(await putIf(tag), mismatch, tag);
  assert.equal(outcomeOf(await get('conditional')), unknownSkill);
  await caller.track(event({ skill_id: 'conditional' }));
  assert.equal((await get('conditional')).headers.etag, '"0"');
  assert.equal(await putIf('"1"'), mismatch);
  const first = await put('conditional', {}, { 'If-Match': '"0"' });
  assert.equal(first.status, 200);
  const tag = first.headers.etag as string;
  assert.equal(await putIf('"0"'), mismatch);
  assert.equal(await putIf(`W/${tag}`), mismatch);
  assert.equal(await putIf(`"0", ${tag}`), '200');
  assert.equal(await putIf('*'), '200');
  assert.equal(await putIf(tag), mismatch);
  const current = (await get('conditional')).headers.etag as string;
  const concurrent = await Promise.all(Array.from({ length: 20 }, () => putIf(current)));
  assert.deepEqual(concurrent.sort(), ['200', ...Array(19).fill(mismatch)]);
});

test('PUT /skills/{skill_id} takes effect in all processes from the next answer', async () => {
  const key = await keys.add({ tenant: 'spread' });
  const [here, there] = [callerOf(service, key), callerOf(second, key)];
  const masteryOf = async (by: Caller) => (await by.get('/api/v1/mastery/ada/skill?explain=true')).json.data;
  // Both processes cache the unconfigured catalogue.
  for (const by of [here, there]) await by.track(event({ user_id: 'ada', skill_id: 'skill' }));
  for (const by of [here, there]) assert.equal((await masteryOf(by)).section, null);
  for (let i = 1; i <= 4; i++) {
    const [setter, other] = i % 2 === 0 ? [here, there] : [there, here];
    const section = i % 3 === 0 ? 'math' : 'rw';
    const parameters = { ...manual, p_init: (40 + i) / 100 };
    assert.equal((await put('skill', { section, parameters }, {}, setter)).status, 200);
    for (const by of [other, setter]) {
      // A new learner starts at p_init.
      const answer = await by.track(event({ skill_id: 'skill' }));
      assert.equal(answer.json.data.mastery_before, parameters.p_init, `change ${i}`);
      const mastery = await masteryOf(by);
      const found = [mastery.section, mastery.explanation.parameters.p_init];
      assert.deepEqual(found, [section, parameters.p_init]);
    }
  }
});

test('A catalogue of a newer version makes answers and reads of its tenant fail with 503, and no others', async () => {
  const newer = await callerIn('newer');
  await redis.hset(catalogueKey(keys.nameOf('newer')), 'skill', '{"v":2}');
  await redis.hset(catalogueRevisionsKey, keys.nameOf('newer'), '1 1800000000000');
  // Concurrent answers are counted in one batch.
  const callers = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? caller : newer));
  const results = await Promise.all(callers.map((by) => by.track(event({ skill_id: 'skill' }))));
  for (const [i, answer] of results.entries())
    assert.equal(outcomeOf(answer), i % 2 === 0 ? '200' : '503 UNAVAILABLE', answer.text);
  assert.equal(outcomeOf(await get('skill', newer)), '503 UNAVAILABLE');
});

test('PUT /skills/{skill_id} takes effect in all processes from the next prediction', async () => {
  const key = await keys.add({ tenant: 'predicted' });
  const [here, there] = [callerOf(service, key), callerOf(second, key)];
  const repeat = (skill_id: string, is_correct: boolean) =>
    Array.from({ length: 30 }, () => event({ user_id: 'ada', skill_id, is_correct }));
  await here.trackAll([...repeat('strong', true), ...repeat('weak', false)]);
  const mathScores = () =>
    Promise.all(
      [here, there].map(async (by) => (await by.get('/api/v1/predictions/ada')).json.data.current_math),
    );
  await mathScores();
  const scoreWith = async (strong: number, weak: number): Promise<number> => {
    await put('strong', { section: 'math', weight: strong }, {}, here);
    await put('weak', { section: 'math', weight: weak }, {}, there);
    const [first, other] = (await mathScores()) as [number, number];
    assert.equal(first, other);
    return first;
  };
  const low = await scoreWith(1, 1000);
  const high = await scoreWith(1000, 1);
  assert.ok(low < high, `${low} < ${high}`);
  assert.equal(await scoreWith(1, 1000), low);
});
