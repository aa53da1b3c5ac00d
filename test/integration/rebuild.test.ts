/** `npm run rebuild`: restores Redis from ClickHouse byte for byte, next to a service that waits for it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { minRegisteredLearners } from '../../src/domain/base/score-constants.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { recordModelChanges } from '../../src/services/models/fit-models.js';
import { createModelStore, publishModel } from '../../src/store/models/model-store.js';
import { rareSkillsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createModelHistory } from '../../src/warehouse/ingest/model-history.js';
import { takeBack } from '../support/builders/learner-data.js';
import { drawSkills, seeded } from '../support/builders/random.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { keysOf, startOnBareRedis } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const { redisServer, service, clickhouse, redis, env } = await startOnBareRedis({ after });
const keys = await keysOf({ after }, service);
const random = seeded(20_261_122);
const rebuild = (...args: string[]) => runCommand('rebuild', env, ...args);

const callers: Caller[] = [];
for (const tenant of ['default', 'second', 'third'])
  callers.push(callerOf(service, await keys.add({ tenant })));
const callerAt = (i: number): Caller => callers[i % callers.length] as Caller;
const pickNumber = (count: number): number => Math.floor(count * random());
const pick = <Value>(values: readonly Value[]): Value => values[pickNumber(values.length)] as Value;
const learnerCount = 16;
const skills = indices(9).map((i) => `skill ${i}`);

let events = 0;
function buildEvent(userId: string): Record<string, unknown> {
  events += 1;
  return {
    user_id: userId,
    ...drawSkills(skills, random),
    is_correct: random() < 0.6,
    time_spent_seconds: pick([null, 1, 20, 75, 4000]),
    confidence_score: pick([null, 1, 5]),
    question_difficulty: pick([null, -1.5, 0.1]),
    item_id: random() < 0.3 ? null : `item ${pickNumber(300)}`,
    event_id: random() < 0.2 ? null : `event ${events}`,
    occurred_at: random() < 0.5 ? null : new Date(Date.now() - pickNumber(10) * 86_400_000).toISOString(),
  };
}

/** Batches that were sent, with their results. */
const sent: { caller: Caller; events: Record<string, unknown>[]; results: unknown[] }[] = [];

async function answer(batches: number): Promise<void> {
  for (let i = 0; i < batches; i++) {
    const caller = callerAt(pickNumber(3));
    const users = indices(3).map(() => `learner \\ ${pickNumber(learnerCount)}`);
    const batch = indices(1 + pickNumber(60)).map(() => buildEvent(pick(users)));
    const { status, json } = await caller.trackAll(batch);
    assert.equal(status, 200, JSON.stringify(json));
    sent.push({ caller, events: batch, results: json.data.results });
  }
}

async function put(i: number, path: string, body: object): Promise<void> {
  const { status, text } = await callerAt(i).call({ method: 'PUT', path, body: JSON.stringify(body) });
  assert.equal(status, 200, text);
}

async function configure(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    const path = `/api/v1/goals/learner%20%5C%20${i}`;
    await put(i, path, { target_score: 1200, target_date: i % 2 === 0 ? '2099-01-02' : null });
    if (i % 5 === 0) assert.equal((await callerAt(i).call({ method: 'DELETE', path })).status, 200);
  }
  const parameters = { p_init: 0.2, p_learn: 0.15, p_guess: 0.25, p_slip: 0.05, p_forget: 0.02 };
  for (let i = 0; i < 12; i++) {
    const skill = { section: pick(['math', 'rw', null]), weight: 0.5 + random(), name: `Name "${i}"` };
    await put(i, `/api/v1/skills/skill%20${i % 7}`, i % 4 === 0 ? { ...skill, parameters } : skill);
  }
  for (let i = 0; i < 6; i++) {
    const user_ids = indices(5 + i).map((n) => `learner \\ ${n}`);
    await put(i, `/api/v1/groups/group%20${i % 4}`, {
      name: `Name \\ '${i}'`,
      user_ids,
      parent_group_id: 'all',
    });
    const profile = {
      display_name: i < 4 ? `Ana ${i}` : null,
      attributes: i === 5 ? {} : { "a'\\": `b\\'${i}` },
    };
    await put(i, `/api/v1/learners/learner%20%5C%20${i}/profile`, profile);
  }
  const path = '/api/v1/groups/group%203';
  assert.equal((await callerAt(0).call({ method: 'DELETE', path })).status, 200);
  await keys.revoke(await keys.add({ tenant: 'second', scopes: ['read'], quota: 5 }));
}

/** The n-th skill gets answers of n learners. Only the last one has enough to be registered. */
async function answerRareSkills(): Promise<void> {
  const rare = indices(minRegisteredLearners).flatMap((i) =>
    indices(i + 1).map((user) => ({
      user_id: `learner \\ ${user}`,
      skill_id: `by ${i + 1}`,
      is_correct: true,
    })),
  );
  assert.equal((await callerAt(0).trackAll(rare)).status, 200);
}

/** Learners with one retracted answer, by its index. */
const retracted: Readonly<Record<string, number>> = {
  'retracted middle': 20,
  'retracted last': 39,
  'retracted only': 0,
};
const retractedEvents = (user: string) =>
  indices(user === 'retracted only' ? 1 : 40).map((i) => ({
    ...{ user_id: user, item_id: `item ${i % 7}`, event_id: `event ${i}` },
    ...(i % 4 === 0 ? { skill_ids: ['skill 2', 'skill 0', 'skill 1'] } : { skill_id: `skill ${i % 4}` }),
    ...{ is_correct: i % 3 !== 0, time_spent_seconds: 20 + i },
    occurred_at: new Date(Date.UTC(2026, 0, 1 + (i >> 3), 12, i % 60)).toISOString(),
  }));

const retractedResults = new Map<string, unknown>();

async function retractAnswers(): Promise<void> {
  for (const [user, index] of Object.entries(retracted)) {
    const batch = retractedEvents(user);
    const firstResults: unknown[] = [];
    for (const part of [batch.slice(0, 25), batch.slice(25)]) {
      if (part.length === 0) continue;
      const { status, json } = await callerAt(0).trackAll(part);
      assert.equal(status, 200);
      firstResults.push(...json.data.results.map(({ data }: { data: unknown }) => data));
    }
    retractedResults.set(user, firstResults[index]);
    assert.equal((await takeBack(callerAt(0), user, `event ${index}`)).status, 200);
  }
}

async function publish(tenant: string): Promise<void> {
  const models = createModelStore(redis);
  const version = await models.reserveVersion(tenant);
  const model = encodeModel({ ...unfittedModel, version, fittedAt: '2026-01-15T12:00:00.000Z' });
  const basedOn = await models.fetchActiveVersion(tenant);
  const fit = { tenant, version, basedOn, model, report, items: null, publishedAt: Date.now() };
  assert.ok(await publishModel(redis, fit));
  const ports = { models, history: createModelHistory(clickhouse), logger: createLogger('warn', 'test') };
  await recordModelChanges(ports as Parameters<typeof recordModelChanges>[0]);
}

const bkt = { answers: 1, oldLogLoss: 0.5, newLogLoss: 0.4 };
const served = { ...bkt, published: true, reason: '' };
const accuracy = { ...served, cases: 1, learners: 1, oldCoverage80: 0.7, newCoverage80: 0.8 };
const sample = { answers: 1, learners: 1, sampledOneIn: 1, heldOutLearners: 1, seconds: 1 };
const report = JSON.stringify({ ...sample, skills: [], bkt, served, accuracy });

const count = async (query: string): Promise<number> =>
  Number((await selectRows<{ n: number }>(clickhouse, `SELECT toUInt32((SELECT ${query})) AS n`))[0]?.n);

/** Waits until ClickHouse has everything. */
async function waitUntilStored(): Promise<void> {
  for (const pattern of ['st:*:out', 'st:*:journal'])
    for (const key of await redis.keys(pattern)) await emptied(redis, key);
  const countKeys = async (): Promise<number> =>
    (await count('uniqExact(tenant, key_id) FROM api_keys')) +
    (await count('uniqExact(tenant, key_id) FROM api_keys WHERE revoked_at IS NOT NULL'));
  await waitFor('the keys', async () => (await countKeys()) === (await redis.hlen('st:keys')) + 1);
}

const readyz = async (): Promise<number> => (await fetch(`${service.baseUrl}/readyz`)).status;

type Dump = Map<string, string[]>;

/**
 * Everything that a rebuild restores exactly. Not item counters, which are approximate, changes of the catalogue for
 * services that run, and counters of answers, which the audit compares.
 */
async function dump(): Promise<Dump> {
  const all = [...(await dumpRedis(redis))].filter(
    ([name]) => !/^st:\{m:.*\}:i:|^st:\{catalogues\}:changes:|:(accepted|removed)$/.test(name),
  );
  // Answers after a retracted one have new results. Hashes of their ids and times stay: 12 bytes.
  const withoutResults = (name: string, entries: string[]): string[] =>
    /:e:.*retracted/.test(name) ? entries.map((entry) => entry.slice(0, 24)) : entries;
  return new Map(all.map(([name, entries]) => [name, withoutResults(name, entries)]));
}

/** The keys that differ. */
const compare = (before: Dump, now: Dump): string[] =>
  [...new Set([...before.keys(), ...now.keys()])].filter(
    (name) => (before.get(name) ?? []).join() !== (now.get(name) ?? []).join(),
  );

let before: Dump = new Map();

test('npm run rebuild restores nothing if Redis has everything', async () => {
  const fresh = await rebuild();
  assert.deepEqual([fresh.code, fresh.out, fresh.err], [0, 'Nothing to restore\n', '']);
  await answer(20);
  await configure();
  await answerRareSkills();
  await retractAnswers();
  await publish('second');
  await answer(20);
  await waitUntilStored();
  const again = await rebuild();
  assert.deepEqual([again.code, again.out, again.err], [0, 'Nothing to restore\n', '']);
  before = await dump();
  assert.ok(before.size > 80, `${before.size} keys`);
  assert.equal(before.get(rareSkillsKey('default'))?.length, minRegisteredLearners - 1);
});

test('npm run rebuild restores an empty Redis byte for byte, and the service continues without a restart', async () => {
  await redisServer.kill();
  await redisServer.start();
  await waitFor('/readyz to respond 503', async () => (await readyz()) === 503);
  assert.equal((await callerAt(0).track(buildEvent('new'))).status, 503);
  const { code, out, err } = await rebuild('--json');
  assert.deepEqual([code, err], [0, ''], out);
  const result = JSON.parse(out);
  assert.equal(result.answers, await count('count() FROM attempts'));
  assert.equal(result.learners, await count('uniqExact(tenant, user_id) FROM attempts'));
  assert.deepEqual([result.broken_learners, result.notes], [0, []]);
  assert.deepEqual(compare(before, await dump()), []);
  await waitFor('/readyz to respond 200', async () => (await readyz()) === 200);
  await waitFor('the service', async () => (await callerAt(0).get('/api/v1/skills')).status === 200);
  const audit = await runCommand('audit', env);
  assert.equal(audit.code, 0, audit.out);
});

test('After a rebuild retries get their first results, and new answers get the next numbers', async () => {
  for (const { caller, events: batch, results } of sent) {
    const { json } = await caller.trackAll(batch.filter(({ event_id }) => event_id !== null));
    const expected = results.filter((_, i) => batch[i]?.event_id !== null);
    const replayed = expected.map((result, index) => ({ ...(result as object), index, replayed: true }));
    assert.deepEqual(json.data.results, replayed);
  }
  for (const [user, index] of Object.entries(retracted)) {
    const { status, headers, json } = await callerAt(0).track(retractedEvents(user)[index]);
    assert.deepEqual([status, headers['idempotent-replayed']], [200, 'true'], user);
    assert.deepEqual(json.data, retractedResults.get(user), user);
  }
  await answer(10);
  await waitUntilStored();
  const gaps = `count() FROM (SELECT user_id FROM attempts WHERE NOT startsWith(user_id, 'retracted')
    GROUP BY tenant, user_id HAVING max(learner_seq) != count() OR uniqExact(learner_seq) != count())`;
  assert.equal(await count(gaps), 0);
});

test('npm run rebuild -- --verify finds no difference while answers arrive', async () => {
  const stop = new AbortController();
  const answering = (async () => {
    for (; !stop.signal.aborted; await sleep(500)) await answer(1);
  })();
  const { code, out, err } = await rebuild('--verify', '--json');
  stop.abort();
  await answering;
  const result = JSON.parse(out);
  assert.deepEqual([code, err, result.differences], [0, '', []], out);
  assert.ok(result.learners >= learnerCount, out);
});

test('npm run rebuild -- --verify names each difference and writes nothing', async () => {
  await waitUntilStored();
  const stored: string[] = [];
  // Some learners have only a goal.
  for (const key of (await redis.keys('st:{p*}:l:default:learner*')).sort())
    if (await redis.hexists(key, 'L')) stored.push(key);
  const [gone, changed, behind, ...others] = stored as [string, string, string, ...string[]];
  const skill = (await redis.hkeys(changed)).find((field) => field.startsWith('s')) as string;
  const record = (await redis.hgetBuffer(changed, skill)) as Buffer;
  record.writeDoubleLE(0.123, 16);
  const own = (await redis.hgetBuffer(behind, 'L')) as Buffer;
  own.writeUInt32LE(own.readUInt32LE(8) - 1, 8);
  await redis.del(gone);
  await redis.hset(changed, skill, record);
  await redis.hset(behind, 'L', own);
  const unknown = `${others[0]?.slice(0, others[0].indexOf('default'))}default:unknown`;
  await redis.copy(others[0] as string, unknown);
  const damaged = await dump();
  const { code, out } = await rebuild('--verify', '--json');
  const { differing, differences } = JSON.parse(out);
  assert.deepEqual([code, differing, differences.length], [1, 4, 4], out);
  const name = (key: string): string => key.slice(key.indexOf(':l:') + 3);
  const answers = own.readUInt32LE(8);
  const expected = {
    [name(gone)]: 'is missing in Redis',
    [name(changed)]: `differs in skill ${skill.slice(1)}`,
    [name(behind)]: `has ${answers} answers in Redis and ${answers + 1} in ClickHouse`,
    'default:unknown': 'is missing in ClickHouse',
  };
  const found = differences.map(({ learner, what }: Record<string, string>) => [learner, what]);
  assert.deepEqual(Object.fromEntries(found), expected);
  assert.deepEqual(compare(damaged, await dump()), []);
});
