/** The journal: goals, catalogue entries and served forecasts on their way from Redis to ClickHouse. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { Redis } from 'ioredis';
import {
  encodeForecastRow,
  encodeGoalRow,
  encodeProfileRow,
  encodeSkillRow,
  type GoalChange,
  type ServedForecast,
  type SkillChange,
} from '../../src/contracts/journal/journal.js';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
import { type ScheduledRunsOptions, schedules, startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { computeSum, indices, splitIntoParts } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { createJournalDrain } from '../../src/services/outbox/drain-journal.js';
import { createJournal, type Journal, recordForecasts } from '../../src/store/outbox/journal.js';
import { catalogueJournalKey, forecastsKey, journalKey } from '../../src/store/redis/keys.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { startGateway } from '../support/fault/gateway.js';
import { countOf, emptyTables, fileDatabase } from '../support/inspect/warehouse.js';
import { roundsOf } from '../support/runner/long-form.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const silent = createLogger('fatal', 'test');
const { client, clickhouseUrl } = await fileDatabase({ after });
const redisUrl = await startTestRedis({ after });
const redis = (await redisOf({ after }, redisUrl)) as Redis;
const journal = createJournal(redis, 4);

beforeEach(async () => {
  await emptyTables(client);
  await redis.flushall();
});

const firstAt = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const firstTime = '2026-01-02 03:04:05.678';
const crash = () => Promise.reject(new Error('crash'));

const drainWith = (parts: Partial<Journal> = {}, logger = silent, connection = client) =>
  createJournalDrain({
    journal: { ...journal, ...parts },
    warehouse: createJournalWarehouse(connection),
    logger,
  });
const drain = drainWith();

function addGoal(at: number, change: Partial<GoalChange> = {}): Promise<string | null> {
  const goal = { tenant: 'default', userId: 'learner-1', targetScore: 1200, targetDate: null, ...change };
  return redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${at}\t${encodeGoalRow(goal)}`);
}

function addSkill(revision: number, change: Partial<SkillChange> = {}): Promise<string | null> {
  const skill = { tenant: 'default', skillId: 'algebra', ...defaultSkillSetting, ...change };
  const row = `${revision}\t${firstAt + revision}\t${encodeSkillRow(skill)}`;
  return redis.xadd(catalogueJournalKey, '*', 'k', 'skill', 'r', row);
}

/** @returns the number of rows that did not fit, and the error that lost them */
async function record(partition: number, rows: readonly string[], maxRows = 10_000) {
  let lost: [count: number, error: unknown] = [0, undefined];
  await recordForecasts(redis, partition, rows, maxRows, (...given) => {
    lost = given as typeof lost;
  });
  return lost;
}

const encode = (change: Partial<ServedForecast>): string => encodeForecastRow(servedForecast(change));
const addForecasts = (changes: readonly Partial<ServedForecast>[]) => record(2, changes.map(encode));

const toRecord = (fields: readonly string[]): Record<string, string> =>
  Object.fromEntries(splitIntoParts(fields, 2));

/** A logger whose lines a test can read. */
function captureLog() {
  const lines: { level: number; parked?: string }[] = [];
  return { logger: createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line)) }), lines };
}

const startRuns = (options: Omit<ScheduledRunsOptions, 'everyMs'>) =>
  startScheduledRuns(schedules.journal, { everyMs: 2000, ...options });

test('The journal drain stores each fact once, and the views show the latest one', async () => {
  assert.equal(await drain(), 0);
  await addGoal(firstAt, { userId: 'kept', targetScore: 1000 });
  await addGoal(firstAt + 1, { userId: 'kept', targetScore: 1400, targetDate: '2027-05-01' });
  await addGoal(firstAt, { userId: 'deleted' });
  await addGoal(firstAt + 1, { userId: 'deleted', targetScore: null });
  await addGoal(firstAt, { tenant: 'other', userId: 'kept', targetScore: 600 });
  const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.05, pForget: 0.02 };
  await addSkill(1, { section: 'math', weight: 2 });
  await addSkill(2, { skillId: 'reading', name: 'Reading\t"1"\n', section: 'rw', parameters });
  await addSkill(3, { name: 'Algebra' });
  await addForecasts([{}, { madeAt: firstAt, targetScore: null, goalProbability: null }]);
  assert.deepEqual(await journal.facts(), { journalLength: 10, parked: 0, fullyParked: 0 });
  assert.equal(await drain(), 10);
  assert.deepEqual(await journal.facts(), { journalLength: 0, parked: 0, fullyParked: 0 });
  const later = firstTime.replace('678', '679');
  const kept = { user_id: 'kept' };
  assert.deepEqual(await selectRows(client, 'SELECT * FROM goals ORDER BY tenant'), [
    { tenant: 'default', target_score: 1400, target_date: '2027-05-01', updated_at: later, ...kept },
    { tenant: 'other', target_score: 600, target_date: null, updated_at: firstTime, ...kept },
  ]);
  const none = { p_init: null, p_learn: null, p_guess: null, p_slip: null, p_forget: null };
  const manual = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.05, p_forget: 0.02 };
  const catalogue = 'SELECT * EXCEPT (tenant, updated_at) FROM skill_catalogue ORDER BY skill_id';
  assert.deepEqual(await selectRows(client, catalogue), [
    { skill_id: 'algebra', revision: 3, name: 'Algebra', section: '', weight: 1, ...none },
    { skill_id: 'reading', revision: 2, name: 'Reading\t"1"\n', section: 'rw', weight: 1, ...manual },
  ]);
  const forecasts = `SELECT made_at, total_high, target_score, goal_probability, tenant_model_version, above_95
     FROM forecasts ORDER BY made_at`;
  const rest = { total_high: 1120, tenant_model_version: 7, above_95: 2 };
  assert.deepEqual(await selectRows(client, forecasts), [
    { made_at: firstTime, target_score: null, goal_probability: null, ...rest },
    { made_at: '2026-01-10 15:00:00.000', target_score: 1200, goal_probability: 0.25, ...rest },
  ]);
});

test('A journal drain that crashes before the removal is repeated, and no view shows a fact twice', async () => {
  await addGoal(firstAt);
  await addSkill(1);
  await addForecasts([{}]);
  for (const _ of [1, 2]) await assert.rejects(drainWith({ remove: crash })(), /crash/);
  assert.equal((await journal.facts()).journalLength, 3);
  await addForecasts([{ days: 30 }]);
  assert.equal(await drain(), 4);
  for (const [view, table, rows] of [
    ['goals', 'goal_changes', 1],
    ['skill_catalogue', 'skill_changes', 1],
    ['forecasts', 'served_forecasts', 2],
  ] as const) {
    assert.equal(await countOf(client, view), rows, view);
    await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
    assert.equal(await countOf(client, table), rows, table);
  }
});

test('The journal drain stores blocks of bounded size and stops between two of them', async () => {
  await addForecasts(indices(1400).map((i) => ({ madeAt: firstAt + i })));
  await addGoal(firstAt);
  assert.equal(await drain(AbortSignal.abort()), 501);
  assert.equal((await journal.facts()).journalLength, 900);
  assert.equal(await drain(), 900);
  assert.equal(await countOf(client, 'forecasts'), 1400);
});

test('The journal drain parks rejected rows and unknown kinds, and logs no content', async () => {
  const addGoals = async (from: number): Promise<void> => {
    for (let i = from; i < from + 5; i++) await addGoal(firstAt + i, { userId: `learner-${i}` });
  };
  await addGoals(0);
  const broken = await redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${firstAt}\tt\tu\ta lot\t\\N`);
  const short = await redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${firstAt}\tt`);
  const unknown = await redis.xadd(journalKey(1), '*', 'k', 'wish', 'r', 'x');
  await redis.xadd(journalKey(1), '*', 'other', 'fields');
  await addGoals(5);
  const { logger, lines } = captureLog();
  assert.equal(await drainWith({}, logger)(), 14);
  assert.equal(await countOf(client, 'goals'), 10);
  assert.deepEqual(await journal.facts(), { journalLength: 0, parked: 4, fullyParked: 0 });
  const parkedKey = `${journalKey(1)}:parked`;
  const parked = (await redis.xrange(parkedKey, '-', '+')).map(([, fields]) => toRecord(fields));
  const byId = new Map(parked.map((fields) => [fields.id, fields]));
  assert.deepEqual(byId.get(broken ?? ''), {
    k: 'goal',
    r: `${firstAt}\tt\tu\ta lot\t\\N`,
    id: broken,
    reason: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
  });
  assert.equal(byId.get(short ?? '')?.reason, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED');
  assert.equal(byId.get(unknown ?? '')?.reason, 'unknown kind');
  assert.ok(lines.length > 0);
  for (const { level, parked: key } of lines) assert.deepEqual([level, key], [50, parkedKey]);
  assert.ok(!JSON.stringify(lines).includes('a lot'), 'the log has content of a row');
});

test('The journal drain parks no rows while their table is missing and still serves other tables', async () => {
  await client.command({ query: 'RENAME TABLE goal_changes TO elsewhere' });
  await addGoal(firstAt);
  await addForecasts([{}]);
  await assert.rejects(drain(), { code: '60' });
  assert.deepEqual(await journal.facts(), { journalLength: 1, parked: 0, fullyParked: 0 });
  assert.equal(await countOf(client, 'forecasts'), 1);
  await client.command({ query: 'RENAME TABLE elsewhere TO goal_changes' });
  assert.equal(await drain(), 1);
  assert.equal(await countOf(client, 'goals'), 1);
});

type Profile = { readonly displayName: string; readonly attributes: Readonly<Record<string, string>> };
const toComparable = ({ displayName, attributes }: Profile) => [
  displayName,
  Object.entries(attributes).sort(),
];

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 128 }),
  fc.string({ unit: fc.constantFrom(...'\\\t\n\r\0\b\fN\'":,{}'), maxLength: 20 }),
);

test('The journal drain stores every text unchanged', async () => {
  let revision = 0;
  const property = fc.asyncProperty(
    fc.array(fc.tuple(text, text), { minLength: 10, maxLength: 60 }),
    async (pairs) => {
      const first = revision + 1;
      for (const [skillId, name] of pairs) await addSkill(++revision, { skillId, name });
      await drain();
      const query = `SELECT skill_id, name FROM skill_changes WHERE revision >= ${first} ORDER BY revision`;
      const expected = pairs.map(([skill_id, name]) => ({ skill_id, name }));
      assert.deepEqual(await selectRows(client, query), expected);
    },
  );
  await assertAsync(property, { numRuns: roundsOf(5, 40) });
  assert.equal((await journal.facts()).parked, 0);
});

test('The journal drain stores every attribute of a profile unchanged', async () => {
  let at = firstAt;
  // The API rejects control characters.
  const plain = text.map((one) => one.replaceAll(/\p{Cc}/gu, ''));
  const attributes = fc.dictionary(plain, plain, { maxKeys: 10 });
  const profile = fc.record({ displayName: text, attributes });
  const property = fc.asyncProperty(fc.array(profile, { minLength: 5, maxLength: 20 }), async (profiles) => {
    const first = at + 1;
    for (const one of profiles) {
      const row = `${++at}\t${encodeProfileRow({ tenant: 'default', userId: 'ada' }, one)}`;
      await redis.xadd(journalKey(1), '*', 'k', 'profile', 'r', row);
    }
    await drain();
    const query = `SELECT display_name AS displayName, attributes FROM learner_profile_changes
      WHERE updated_at >= fromUnixTimestamp64Milli(${first}) ORDER BY updated_at`;
    assert.deepEqual(
      (await selectRows<Profile>(client, query)).map(toComparable),
      profiles.map(toComparable),
    );
  });
  await assertAsync(property, { numRuns: roundsOf(5, 40) });
  assert.equal((await journal.facts()).parked, 0);
});

test('recordForecasts needs one command, respects its limit and reports lost rows', async () => {
  const rows = indices(500).map((i) => encode({ madeAt: firstAt + i }));
  const countScriptCalls = async (): Promise<number> => {
    const calls = (await redis.info('commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
    return computeSum([...calls].map(([, count]) => Number(count)));
  };
  assert.deepEqual(await record(1, rows.slice(0, 1), 800), [0, undefined], 'loads the script');
  const before = await countScriptCalls();
  assert.equal((await record(0, rows, 800))[0], 0);
  assert.equal((await countScriptCalls()) - before, 1);
  assert.equal((await record(0, rows, 800))[0], 200);
  assert.equal((await record(0, rows, 800))[0], 500);
  assert.equal((await record(0, [], 800))[0], 0);
  const stored = (await redis.xrange(forecastsKey(0), '-', '+')).map(([, fields]) => toRecord(fields).r);
  assert.deepEqual(stored, [...rows, ...rows.slice(0, 300)]);
  await redis.set(forecastsKey(3), 'no stream');
  const [lost, error] = await record(3, rows, 800);
  assert.equal(lost, 500);
  assert.match(String(error), /WRONGTYPE/);
});

test('Scheduled runs drain the journal one at a time across processes', async (t) => {
  let running = 0;
  let most = 0;
  const run = async (signal: AbortSignal): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    try {
      await drain(signal);
    } finally {
      running -= 1;
    }
  };
  const processes = [1, 2].map(() => startRuns({ redisUrl, run, logger: silent }));
  t.after(() => Promise.all(processes.map((one) => one.close())));
  for (let i = 1; i <= 2; i++) {
    await addGoal(firstAt, { userId: `learner-${i}` });
    await waitFor('the goal', async () => (await countOf(client, 'goals')) === i);
  }
  assert.equal(most, 1);
});

test('Scheduled runs log an outage of ClickHouse once and drain the journal after it', async (t) => {
  const gateway = await startGateway(t, clickhouseUrl);
  const connection = connectWarehouse(gateway.url);
  const { logger, lines } = captureLog();
  gateway.set('down');
  await addGoal(firstAt);
  let failures = 0;
  const drainOverGateway = drainWith({}, silent, connection);
  const run = (signal: AbortSignal) =>
    drainOverGateway(signal).catch((error: unknown) => {
      failures += 1;
      throw error;
    });
  const runs = startRuns({ redisUrl, run, logger });
  t.after(async () => {
    await runs.close();
    await connection.close();
  });
  await waitFor('two failed runs', () => failures >= 2);
  assert.deepEqual(await journal.facts(), { journalLength: 1, parked: 0, fullyParked: 0 });
  gateway.set('pass');
  await waitFor('the goal', async () => (await countOf(client, 'goals')) === 1);
  await waitFor('the log line', () => lines.length >= 2);
  assert.equal(lines.map(({ level }) => level).join(), '40,30');
});

test('Scheduled runs restore their schedule in a Redis that came back empty', async (t) => {
  const bareRedis = await startBareRedis(t);
  let count = 0;
  const run = async (): Promise<void> => {
    count += 1;
  };
  const runs = startRuns({ redisUrl: bareRedis.url, run, logger: silent });
  t.after(() => runs.close());
  await waitFor('a run', () => count > 0);
  await bareRedis.kill();
  await bareRedis.start();
  const before = count;
  await waitFor('two more runs', () => count >= before + 2);
});
