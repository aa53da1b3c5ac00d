/** A Redis that came back empty is restored from ClickHouse byte for byte, beside the service that waits for it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { minRegisteredLearners } from '../../src/domain/base/score-constants.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { createLogger } from '../../src/logger.js';
import { recordModelChanges } from '../../src/services/models/fit-models.js';
import { createModelStore, publishModel } from '../../src/store/models/model-store.js';
import { rareSkillsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createModelHistory } from '../../src/warehouse/ingest/model-history.js';
import { seeded } from '../support/builders/random.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, keysOf, redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const redisServer = await startBareRedis({ after });
// Models come from `publish` below alone: a scheduled fit fails while Redis is empty, and is tried again 30 s later,
// amid a comparison.
const service = await startService({ after }, { redisUrl: redisServer.url });
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const keys = await keysOf({ after }, service);
const random = seeded(20_261_122);
const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url };

exitAfterTests();

type Caller = ReturnType<typeof callerOf>;
const tenants = ['default', 'second', 'third'];
const callers: Caller[] = [];
for (const tenant of tenants) callers.push(callerOf(service, await keys.add({ tenant })));
const callerAt = (i: number): Caller => callers[i % callers.length] as Caller;

const below = (n: number): number => Math.floor(n * random());
const oneOf = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value;

let made = 0;
function eventOf(userId: string): Record<string, unknown> {
  made += 1;
  return {
    user_id: userId,
    skill_id: `skill ${below(9)}`,
    is_correct: random() < 0.6,
    time_spent_seconds: oneOf([null, 1, 20, 75, 4000]),
    confidence_score: oneOf([null, 1, 5]),
    question_difficulty: oneOf([null, -1.5, 0.1]),
    item_id: random() < 0.3 ? null : `item ${below(300)}`,
    event_id: random() < 0.2 ? null : `event ${made}`,
    occurred_at: random() < 0.5 ? null : new Date(Date.now() - below(10) * 86_400_000).toISOString(),
  };
}

/** Sent before, with what was answered. */
const sent: { caller: Caller; events: Record<string, unknown>[]; results: unknown[] }[] = [];

async function answer(learners: number, batches: number): Promise<void> {
  for (let i = 0; i < batches; i++) {
    const caller = callerAt(below(3));
    const users = Array.from({ length: 3 }, () => `learner \\ ${below(learners)}`);
    const events = Array.from({ length: 1 + below(60) }, () => eventOf(oneOf(users)));
    const { status, json } = await caller.trackAll(events);
    assert.equal(status, 200, JSON.stringify(json));
    sent.push({ caller, events, results: json.data.results });
  }
}

async function setGoals(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const path = `/api/v1/goals/learner%20%5C%20${i}`;
    const body = JSON.stringify({ target_score: 1200, target_date: i % 2 === 0 ? '2099-01-02' : null });
    assert.equal((await callerAt(i).call({ method: 'PUT', path, body })).status, 200);
    if (i % 5 === 0) assert.equal((await callerAt(i).call({ method: 'DELETE', path })).status, 200);
  }
}

async function setSkills(): Promise<void> {
  const parameters = { p_init: 0.2, p_learn: 0.15, p_guess: 0.25, p_slip: 0.05, p_forget: 0.02 };
  for (let i = 0; i < 12; i++) {
    const path = `/api/v1/skills/skill%20${i % 7}`;
    const entry = { section: oneOf(['math', 'rw', null]), weight: 0.5 + random(), name: `Name "${i}"` };
    const body = JSON.stringify(i % 4 === 0 ? { ...entry, parameters } : entry);
    assert.equal((await callerAt(i).call({ method: 'PUT', path, body })).status, 200);
  }
}

/** Skill n by n learners: the last one is known. */
async function answerRarely(): Promise<void> {
  const events = Array.from({ length: minRegisteredLearners }, (_, i) =>
    Array.from({ length: i + 1 }, (_, user) => ({
      user_id: `learner \\ ${user}`,
      skill_id: `by ${i + 1}`,
      is_correct: true,
    })),
  );
  assert.equal((await callerAt(0).trackAll(events.flat())).status, 200);
}

async function publish(tenant: string): Promise<void> {
  const models = createModelStore(redis);
  const version = await models.reserveVersion(tenant);
  const model = encodeModel({ ...unfittedModel, version, fittedAt: '2026-01-15T12:00:00.000Z' });
  const basedOn = await models.fetchActiveVersion(tenant);
  const published = {
    tenant,
    version,
    basedOn,
    model,
    report: report(),
    items: null,
    publishedAt: Date.now(),
  };
  assert.ok(await publishModel(redis, published));
  const history = createModelHistory(clickhouse);
  await recordModelChanges({ models, history, logger: createLogger('warn', 'test') } as Parameters<
    typeof recordModelChanges
  >[0]);
}

const report = (): string => {
  const compared = { answers: 1, oldLogLoss: 0.5, newLogLoss: 0.4 };
  const judged = { ...compared, published: true, reason: '' };
  const counts = { answers: 1, learners: 1, sampledOneIn: 1, heldOutLearners: 1, seconds: 1 };
  const coverage = { cases: 1, learners: 1, oldCoverage80: 0.7, newCoverage80: 0.8 };
  const accuracy = { ...judged, ...coverage };
  return JSON.stringify({ ...counts, skills: [], bkt: compared, served: judged, accuracy });
};

const count = async (query: string): Promise<number> =>
  Number((await selectRows<{ n: number }>(clickhouse, `SELECT toUInt32((SELECT ${query})) AS n`))[0]?.n);

/** Everything that Redis alone had is in ClickHouse too. */
async function drained(): Promise<void> {
  const lengths = async (pattern: string): Promise<number> => {
    const found = await Promise.all((await redis.keys(pattern)).map((key) => redis.xlen(key)));
    return found.reduce((sum, length) => sum + length, 0);
  };
  await waitFor('an empty outbox', async () => (await lengths('st:*:out')) === 0);
  await waitFor('an empty journal', async () => (await lengths('st:*:journal')) === 0);
  const told = async (): Promise<number> =>
    (await count('uniqExact(tenant, key_id) FROM api_keys')) +
    (await count('uniqExact(tenant, key_id) FROM api_keys WHERE revoked_at IS NOT NULL'));
  await waitFor('the keys', async () => (await told()) === (await redis.hlen('st:keys')) + 1);
  assert.equal(await count('uniqExact(deployment_id) FROM deployments'), 1);
}

const rebuild = (...args: string[]) => runCommand('rebuild', env, ...args);

async function readyz(): Promise<number> {
  return (await fetch(`${service.baseUrl}/readyz`)).status;
}

/** What differs, for a message that can be read. */
function difference(before: Map<string, string[]>, now: Map<string, string[]>): string[] {
  const names = [...new Set([...before.keys(), ...now.keys()])];
  return names.filter((name) => (before.get(name) ?? []).join() !== (now.get(name) ?? []).join());
}

/** Counters of items come near to what they were; and what answers add to them comes up to a second later. */
/** What is kept of changes for those who saw the catalogue before them: now there is nobody. */
const changes = /^st:\{catalogues\}:changes:/;
const items = /^st:\{m:.*\}:i:/;
const withoutItems = (dump: Map<string, string[]>): Map<string, string[]> =>
  new Map([...dump].filter(([name]) => !items.test(name) && !changes.test(name)));

let before = new Map<string, string[]>();

test('nothing is restored where nothing is missing', { timeout: 600_000 }, async () => {
  const fresh = await rebuild();
  assert.deepEqual([fresh.code, fresh.out, fresh.err], [0, 'nothing to restore\n', '']);
  await keys.revoke(await keys.add({ tenant: 'second', scopes: ['read'], quota: 5 }));
  await answer(25, 60);
  await setGoals();
  await setSkills();
  await answerRarely();
  await publish('second');
  await answer(25, 60);
  await drained();
  const again = await rebuild();
  assert.deepEqual([again.code, again.out, again.err], [0, 'nothing to restore\n', '']);
  before = withoutItems(await dumpRedis(redis));
  assert.ok(before.size > 100, `${before.size} keys`);
  assert.equal(before.get(rareSkillsKey('default'))?.length, minRegisteredLearners - 1);
});

test('an emptied Redis is noticed, rebuilt byte for byte, and goes on by itself', {
  timeout: 600_000,
}, async () => {
  await redisServer.kill();
  await redisServer.start();
  await waitFor('readyz to tell', async () => (await readyz()) === 503);
  assert.equal((await callerAt(0).track(eventOf('new'))).status, 503);
  const { code, out, err } = await rebuild('--json');
  assert.deepEqual([code, err], [0, ''], out);
  const result = JSON.parse(out);
  assert.equal(result.answers, await count('count() FROM attempts'));
  assert.equal(result.learners, await count('uniqExact(tenant, user_id) FROM attempts'));
  assert.deepEqual([result.broken_learners, result.notes], [0, []]);
  assert.deepEqual(difference(before, withoutItems(await dumpRedis(redis))), []);
  await waitFor('readyz', async () => (await readyz()) === 200);
  await waitFor('the service', async () => (await callerAt(0).get('/api/v1/skills')).status === 200);
});

test('retries after it are answered as before, and new answers follow on', { timeout: 600_000 }, async () => {
  for (const { caller, events, results } of sent) {
    const { json } = await caller.trackAll(events.filter(({ event_id }) => event_id !== null));
    const wanted = results.filter((_, i) => events[i]?.event_id !== null) as { data: unknown }[];
    const told = json.data.results as { replayed: boolean; data: unknown }[];
    assert.ok(told.every(({ replayed }) => replayed));
    assert.deepEqual(
      told.map(({ data }) => data),
      wanted.map(({ data }) => data),
    );
  }
  await answer(25, 10);
  await drained();
  const doubled =
    'count() FROM (SELECT tenant, user_id, learner_seq FROM attempts GROUP BY ALL HAVING count() > 1)';
  assert.equal(await count(doubled), 0);
  assert.equal(
    await count(
      'sum(last - n) FROM (SELECT max(learner_seq) AS last, count() AS n FROM attempts GROUP BY tenant, user_id)',
    ),
    0,
  );
});

test('a comparison finds nothing where nothing differs, also while answers come in', {
  timeout: 600_000,
}, async () => {
  const stop = new AbortController();
  const answering = (async () => {
    for (; !stop.signal.aborted; await sleep(500)) await answer(25, 1);
  })();
  const { code, out, err } = await rebuild('--verify', '--json');
  stop.abort();
  await answering;
  const result = JSON.parse(out);
  assert.deepEqual([code, err, result.differences], [0, '', []], out);
  assert.ok(result.learners >= 25, out);
});

test('a comparison tells what differs, and writes nothing', { timeout: 600_000 }, async () => {
  await drained();
  const learners = (await redis.keys('st:{p*}:l:default:learner*')).sort();
  const [gone, changed, behind, ...others] = learners as [string, string, string, ...string[]];
  const skill = (await redis.hkeys(changed)).find((field) => field.startsWith('s')) as string;
  const record = (await redis.hgetBuffer(changed, skill)) as Buffer;
  record.writeDoubleLE(0.123, 16);
  const own = (await redis.hgetBuffer(behind, 'L')) as Buffer;
  own.writeUInt32LE(own.readUInt32LE(8) - 1, 8);
  await redis.del(gone);
  await redis.hset(changed, skill, record);
  await redis.hset(behind, 'L', own);
  const strange = `${others[0]?.slice(0, others[0].indexOf('default'))}default:nobody`;
  await redis.copy(others[0] as string, strange);
  const dump = withoutItems(await dumpRedis(redis));
  const { code, out } = await rebuild('--verify', '--json');
  const { differing, differences } = JSON.parse(out);
  const told = differences.map(
    ({ learner, what }: { learner: string; what: string }) => `${learner} ${what}`,
  );
  const name = (key: string): string => key.slice(key.indexOf(':l:') + 3);
  assert.deepEqual([code, differing], [1, 4], out);
  assert.deepEqual(
    told.sort(),
    [
      `${name(gone)} is not in Redis`,
      `${name(changed)} differs in skill ${skill.slice(1)}`,
      `${name(behind)} has ${own.readUInt32LE(8)} answers in Redis and ${own.readUInt32LE(8) + 1} stored`,
      'default:nobody is in Redis alone',
    ].sort(),
  );
  assert.deepEqual(difference(dump, withoutItems(await dumpRedis(redis))), []);
});
