/** The list of skills, page by page, and one skill. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { emptyTimes } from '../../src/domain/tracing/response-times.js';
import { registerSkills } from '../../src/store/catalogue/registered-skills.js';
import { publishModel } from '../../src/store/models/model-store.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);

const odd = ['a/b', '%2F', '..', '😀', '\uffee', 'é', 'e\u0301', ' ', '__proto__', "'; --", 'x'.repeat(128)];
const skillIds = [...odd, ...Array.from({ length: 239 }, (_, i) => `skill-${i}`)];
const inOrder = [...skillIds].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

const events = skillIds.map((skill_id, i) => event({ user_id: `learner-${i % 5}`, skill_id }));
assert.equal((await caller.trackAll(events)).status, 200);

type Json = JsonAnswer['json'];

const idsOf = (skills: readonly { skill_id: string }[]): string[] => skills.map(({ skill_id }) => skill_id);

test('pages of any size hold every skill once, in the order of UTF-8 bytes', async () => {
  for (const limit of [null, 1000, 250, 249, 7]) {
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query = [limit && `limit=${limit}`, cursor && `cursor=${cursor}`].filter(Boolean).join('&');
      const { status, json } = await caller.get(`/api/v1/skills?${query}`);
      assert.equal(status, 200);
      assert.ok(json.data.skills.length <= (limit ?? 100));
      assert.equal(json.data.model_version, 0);
      seen.push(...idsOf(json.data.skills));
      cursor = json.data.next_cursor;
      if (cursor !== null) assert.match(cursor, /^[\w-]+$/);
    } while (cursor !== null);
    assert.deepEqual(seen, inOrder, `limit ${limit}`);
  }
});

test('a skill: its fields, the same in the list and alone', async () => {
  const { json } = await caller.get('/api/v1/skills?limit=1');
  const [skill] = json.data.skills;
  assert.deepEqual(skill, {
    skill_id: ' ',
    name: null,
    section: null,
    weight: 1,
    parameters: {
      p_init: 0.3,
      p_learn: 0.1,
      p_guess: 0.2,
      p_slip: 0.1,
      p_forget: 0,
      source: 'default',
      version: 0,
      fitted_at: null,
    },
    origin: 'defaults',
    learners: 0,
    answers: 0,
    rapid_threshold_seconds: 3,
    typical_seconds: null,
    updated_at: null,
  });
  const alone = await caller.get('/api/v1/skills/%20');
  assert.deepEqual(alone.json.data, { ...skill, model_version: 0 });
  const head = await caller.head('/api/v1/skills/%20');
  assert.equal(head.status, 200);
});

test('percent-encoded ids find their skill, byte for byte', async () => {
  for (const skill_id of odd) {
    const path = `/api/v1/skills/${skill_id === '..' ? '%2E%2E' : encodeURIComponent(skill_id)}`;
    const { status, json } = await caller.get(path);
    assert.equal(status, 200, path);
    assert.equal(json.data.skill_id, skill_id);
  }
});

const paths: readonly (readonly [string, number, string])[] = [
  ['nothing', 404, 'SKILL_NOT_FOUND'],
  ['skill-239', 404, 'SKILL_NOT_FOUND'],
  ['SKILL-1', 404, 'SKILL_NOT_FOUND'],
  ['a%252Fb', 404, 'SKILL_NOT_FOUND'],
  ['a/b', 404, 'NOT_FOUND'],
  ['', 404, 'NOT_FOUND'],
  ['%', 400, 'INVALID_REQUEST'],
  ['%FF', 400, 'INVALID_REQUEST'],
  ['%0A', 400, 'INVALID_REQUEST'],
  ['x'.repeat(129), 400, 'INVALID_REQUEST'],
];

test('ids in the path', async () => {
  for (const [id, status, code] of paths) {
    const answer = await caller.get(`/api/v1/skills/${id}`);
    assert.deepEqual([answer.status, answer.json.error?.code], [status, code], id);
  }
});

const encode = (text: string): string => Buffer.from(text).toString('base64url');

test('query values', async () => {
  const next = (await caller.get('/api/v1/skills?limit=100')).json.data.next_cursor;
  for (const query of [
    'limit=0',
    'limit=1001',
    'limit=1.5',
    'limit=-1',
    'limit=all',
    'limit=',
    'limit=5&limit=5',
    'cursor=',
    'cursor=abc',
    'cursor=%FF',
    'cursor=%F0%9F%98%80',
    `cursor=${next}=`,
    `cursor=${next}&cursor=${next}`,
    `cursor=${next.slice(0, -1)}%20`,
    `cursor=${encode('skill-1')}`,
    `cursor=${encode('after:')}`,
    `cursor=${encode('after:\n')}`,
  ]) {
    const { status, json } = await caller.get(`/api/v1/skills?${query}`);
    assert.deepEqual([status, json.error?.code], [400, 'INVALID_REQUEST'], query);
  }
  for (const query of ['', 'limit=007', 'other=&other=', `cursor=${next}&limit=1000`]) {
    assert.equal((await caller.get(`/api/v1/skills?${query}`)).status, 200, query);
  }
});

test('a tenant sees its own skills alone', async () => {
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  const none = await other.get('/api/v1/skills');
  assert.deepEqual(none.json.data, { skills: [], next_cursor: null, model_version: 0 });
  assert.equal((await other.get('/api/v1/skills/skill-1')).json.error.code, 'SKILL_NOT_FOUND');
  await other.track(event({ skill_id: 'own' }));
  assert.deepEqual(idsOf((await other.get('/api/v1/skills')).json.data.skills), ['own']);
  assert.equal((await caller.get('/api/v1/skills/own')).status, 404);
});

const fittedAt = '2026-05-31T12:00:00.000Z';
const prior = { pInit: 0.45, pLearn: 0.123456, pGuess: 0.25, pSlip: 0.08, pForget: 0 };
const fitted = { pInit: 0.61, pLearn: 0.05, pGuess: 0.3, pSlip: 0.12, pForget: 0.02 };
const seven: SkillModel = {
  ...resolveSkillModel(unfittedModel, 'any'),
  parameters: fitted,
  source: 'fitted',
  version: 7,
  fittedAt,
  learners: 230,
  answers: 4100,
  difficultyMean: 0,
  times: { answers: 4000, meanSeconds: 60, logMean: Math.log(50), logM2: 900, correct: 3000 },
};

/** Brings a model of three skills into force. */
async function publish(tenant: string): Promise<void> {
  const skills = new Map<string, SkillModel>([
    ['fitted', seven],
    ['kept', { ...seven, version: 3 }],
    ['set', { ...seven, source: 'manual', times: emptyTimes }],
  ]);
  const model = { ...unfittedModel, version: 7, fittedAt, prior, skills };
  const redis = await redisOf({ after }, service.redisUrl);
  const texts = { model: encodeModel(model), report: '{}', items: null };
  const publication = {
    tenant: keys.nameOf(tenant),
    version: 7,
    basedOn: 0,
    publishedAt: Date.now(),
    ...texts,
  };
  assert.equal(await publishModel(redis, publication), true);
  // A fit is of skills that learners answered.
  await registerSkills(redis, publication.tenant, [...skills.keys()]);
}

test('a fitted tenant: what is in force for each skill, and where it came from', async () => {
  await publish('school');
  const school = callerOf(service, await keys.add({ tenant: 'school' }));
  assert.equal((await school.track(event({ user_id: 'ada', skill_id: 'new' }))).status, 200);
  const { skills, model_version } = (await school.get('/api/v1/skills')).json.data;
  assert.equal(model_version, 7);
  assert.deepEqual(idsOf(skills), ['fitted', 'kept', 'new', 'set']);
  const told = skills.map(({ origin, parameters: { source, version } }: Json) => [origin, source, version]);
  assert.deepEqual(told, [
    ['fit', 'fitted', 7],
    ['fit', 'fitted', 3],
    ['tenant_prior', 'default', 7],
    ['manual', 'manual', 7],
  ]);
  assert.deepEqual(skills[0].parameters, {
    p_init: 0.61,
    p_learn: 0.05,
    p_guess: 0.3,
    p_slip: 0.12,
    p_forget: 0.02,
    source: 'fitted',
    version: 7,
    fitted_at: fittedAt,
  });
  assert.deepEqual([skills[0].learners, skills[0].answers], [230, 4100]);
  // A tenth of 60 s; the median of 4,000 times is hardly drawn to the general 75 s.
  assert.deepEqual([skills[0].rapid_threshold_seconds, skills[0].typical_seconds], [6, 50.1]);
  assert.equal(skills[2].parameters.p_learn, 0.1235);
  assert.equal(skills[3].typical_seconds, null);
  assert.equal((await school.get('/api/v1/skills/set')).json.data.origin, 'manual');
  const mastery = await school.get('/api/v1/mastery/ada/new?explain=true');
  const { parameters, next } = mastery.json.data.explanation;
  assert.deepEqual(parameters, skills[2].parameters);
  assert.ok(next.if_wrong.mastery < mastery.json.data.mastery);
});

test('scope, key and method', async () => {
  const writer = callerOf(service, await keys.add({ scopes: ['write', 'admin'] }));
  for (const path of ['/api/v1/skills', '/api/v1/skills/skill-1']) {
    assert.equal((await writer.get(path)).json.error.code, 'FORBIDDEN');
    assert.equal((await callerOf(service, null).get(path)).json.error.code, 'UNAUTHORIZED');
    const { status, headers } = await caller.raw({ method: 'POST', path, body: '{}' });
    assert.deepEqual(
      [status, headers.allow],
      [405, path.endsWith('s') ? 'GET, HEAD' : 'GET, HEAD, PUT, DELETE'],
    );
  }
});
