import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import {
  encodeForecastRow,
  encodeGoalRow,
  encodeSkillRow,
  type GoalChange,
  type ServedForecast,
  type SkillChange,
} from '../../src/contracts/journal/journal.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { type ScheduledRunsOptions, schedules, startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { createJournalDrain } from '../../src/services/outbox/drain-journal.js';
import { createJournal, type Journal, recordForecasts } from '../../src/store/outbox/journal.js';
import { catalogueJournalKey, forecastsKey, journalKey } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { callerOf } from '../support/http/http.js';
import { countOf, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

exitAfterTests();

const partitions = 4;
const bound = 10_000;
const silent = createLogger('fatal', 'test');

const goal = (change: Partial<GoalChange> = {}): GoalChange => ({
  tenant: 'default',
  userId: 'learner-1',
  targetScore: 1200,
  targetDate: null,
  ...change,
});

const skill = (change: Partial<SkillChange> = {}): SkillChange => ({
  tenant: 'default',
  skillId: 'algebra',
  name: null,
  section: null,
  weight: 1,
  parameters: null,
  ...change,
});

/** As the scripts that change goals and catalogues append them. */
const addGoal = (redis: Redis, at: number, change: Partial<GoalChange> = {}) =>
  redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${at}\t${encodeGoalRow(goal(change))}`);
const addSkill = (redis: Redis, revision: number, change: Partial<SkillChange> = {}) =>
  redis.xadd(
    catalogueJournalKey,
    '*',
    ...['k', 'skill', 'r', `${revision}\t${firstAt + revision}\t${encodeSkillRow(skill(change))}`],
  );
/** @returns how many were not noted */
async function note(
  redis: Redis,
  partition: number,
  rows: readonly string[],
  bound: number,
): Promise<number> {
  let lost = 0;
  await recordForecasts(redis, partition, rows, bound, (count) => {
    lost = count;
  });
  return lost;
}

const addForecasts = (redis: Redis, changes: readonly Partial<ServedForecast>[]) =>
  note(
    redis,
    2,
    changes.map((change) => encodeForecastRow(servedForecast(change))),
    bound,
  );

const firstAt = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const firstTime = '2026-01-02 03:04:05.678';

const failing = () => Promise.reject(new Error('cut here'));

test('the journal', { timeout: 600_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const journal = createJournal(redis, partitions);

  async function setUp(t: TestContext) {
    const { client } = await testDatabase(t, clickhouseUrl);
    const keys = await redis.keys('st:*');
    if (keys.length > 0) await redis.del(...keys);
    const drainWith = (parts: Partial<Journal> = {}, logger = silent) =>
      createJournalDrain({
        journal: { ...journal, ...parts },
        warehouse: createJournalWarehouse(client),
        logger,
      });
    return { client, drain: drainWith(), drainWith };
  }

  await t.test('brings what is in force, and says each fact once', async (t) => {
    const { client, drain } = await setUp(t);
    assert.equal(await drain(), 0);
    await addGoal(redis, firstAt, { userId: 'kept', targetScore: 1000 });
    await addGoal(redis, firstAt + 1, { userId: 'kept', targetScore: 1400, targetDate: '2027-05-01' });
    await addGoal(redis, firstAt, { userId: 'deleted' });
    await addGoal(redis, firstAt + 1, { userId: 'deleted', targetScore: null });
    await addGoal(redis, firstAt, { tenant: 'other', userId: 'kept', targetScore: 600 });
    const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.05, pForget: 0.02 };
    await addSkill(redis, 1, { section: 'math', weight: 2 });
    await addSkill(redis, 2, { skillId: 'reading', name: 'Reading\t"1"\n', section: 'rw', parameters });
    await addSkill(redis, 3, { name: 'Algebra' });
    await addForecasts(redis, [{}, { madeAt: firstAt, targetScore: null, goalProbability: null }]);
    assert.deepEqual(await journal.facts(), { journalLength: 10, parked: 0, fullyParked: 0 });
    assert.equal(await drain(), 10);
    assert.deepEqual(await journal.facts(), { journalLength: 0, parked: 0, fullyParked: 0 });
    const goals = await selectRows(client, 'SELECT * FROM goals ORDER BY tenant, user_id');
    const later = firstTime.replace('678', '679');
    assert.deepEqual(goals, [
      {
        tenant: 'default',
        user_id: 'kept',
        target_score: 1400,
        target_date: '2027-05-01',
        updated_at: later,
      },
      { tenant: 'other', user_id: 'kept', target_score: 600, target_date: null, updated_at: firstTime },
    ]);
    const catalogue = await selectRows<Record<string, unknown>>(
      client,
      'SELECT * EXCEPT (tenant, updated_at) FROM skill_catalogue ORDER BY skill_id',
    );
    const none = { p_init: null, p_learn: null, p_guess: null, p_slip: null, p_forget: null };
    const manual = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.05, p_forget: 0.02 };
    assert.deepEqual(catalogue, [
      { skill_id: 'algebra', revision: 3, name: 'Algebra', section: '', weight: 1, ...none },
      { skill_id: 'reading', revision: 2, name: 'Reading\t"1"\n', section: 'rw', weight: 1, ...manual },
    ]);
    const forecasts = await selectRows<Record<string, unknown>>(
      client,
      `SELECT made_at, total_high, target_score, goal_probability, tenant_model_version, above_95
       FROM forecasts ORDER BY made_at`,
    );
    const rest = { total_high: 1120, tenant_model_version: 7, above_95: 2 };
    assert.deepEqual(forecasts, [
      { made_at: firstTime, target_score: null, goal_probability: null, ...rest },
      { made_at: '2026-01-10 15:00:00.000', target_score: 1200, goal_probability: 0.25, ...rest },
    ]);
  });

  await t.test(
    'a run that dies between the insert and the removal is repeated, and nothing shows twice',
    async (t) => {
      const { client, drain, drainWith } = await setUp(t);
      await addGoal(redis, firstAt);
      await addSkill(redis, 1);
      await addForecasts(redis, [{}]);
      await assert.rejects(drainWith({ remove: failing })(), /cut here/);
      await assert.rejects(drainWith({ remove: failing })(), /cut here/);
      assert.equal((await journal.facts()).journalLength, 3);
      await addForecasts(redis, [{ days: 30 }]);
      assert.equal(await drain(), 4);
      const raw = await countOf(client, 'served_forecasts');
      assert.ok(raw >= 2 && raw <= 4, `${raw} rows until they are merged`);
      for (const [view, rows] of [
        ['goals', 1],
        ['skill_catalogue', 1],
        ['forecasts', 2],
      ] as const)
        assert.equal(await countOf(client, view), rows, view);
      for (const [table, rows] of [
        ['goal_changes', 1],
        ['skill_changes', 1],
        ['served_forecasts', 2],
      ] as const) {
        await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
        assert.equal(await countOf(client, table), rows, table);
      }
    },
  );

  await t.test('more than a page goes in blocks, and a stop ends it between two', async (t) => {
    const { client, drain } = await setUp(t);
    const many = (from: number) => Array.from({ length: 700 }, (_, i) => ({ madeAt: firstAt + from + i }));
    await addForecasts(redis, [...many(0), ...many(700)]);
    await addGoal(redis, firstAt);
    assert.equal(await drain(AbortSignal.abort()), 501);
    assert.equal((await journal.facts()).journalLength, 900);
    assert.equal(await drain(), 900);
    assert.equal(await countOf(client, 'forecasts'), 1400);
  });

  await t.test('a row that ClickHouse refuses stands aside, and a kind that nobody knows', async (t) => {
    const { client, drainWith } = await setUp(t);
    for (let i = 0; i < 20; i++) await addGoal(redis, firstAt + i, { userId: `learner-${i}` });
    const broken = await redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${firstAt}\tt\tu\ta lot\t\\N`);
    const short = await redis.xadd(journalKey(1), '*', 'k', 'goal', 'r', `${firstAt}\tt`);
    const unknown = await redis.xadd(journalKey(1), '*', 'k', 'wish', 'r', 'x');
    await redis.xadd(journalKey(1), '*', 'other', 'fields');
    for (let i = 20; i < 40; i++) await addGoal(redis, firstAt + i, { userId: `learner-${i}` });
    const log = heard();
    assert.equal(await drainWith({}, log.logger)(), 44);
    assert.equal(await countOf(client, 'goals'), 40);
    assert.deepEqual(await journal.facts(), { journalLength: 0, parked: 4, fullyParked: 0 });
    const parkedKey = `${journalKey(1)}:parked`;
    const parked = (await redis.xrange(parkedKey, '-', '+')).map(([, fields]) => fieldsOf(fields));
    const byId = new Map(parked.map((fields) => [fields.id, fields]));
    assert.deepEqual(byId.get(broken ?? ''), {
      k: 'goal',
      r: `${firstAt}\tt\tu\ta lot\t\\N`,
      id: broken,
      reason: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
    });
    assert.equal(byId.get(short ?? '')?.reason, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED');
    assert.equal(byId.get(unknown ?? '')?.reason, 'unknown kind');
    assert.ok(log.lines().length > 0);
    for (const { level, parked: key } of log.lines()) assert.deepEqual([level, key], [50, parkedKey]);
    assert.ok(!JSON.stringify(log.lines()).includes('a lot'), 'what the row says stays out of the log');
  });

  await t.test(
    'trouble of the server is no fault of the rows, and of one table none of the others',
    async (t) => {
      const { client, drain } = await setUp(t);
      await client.command({ query: 'RENAME TABLE goal_changes TO elsewhere' });
      await addGoal(redis, firstAt);
      await addForecasts(redis, [{}]);
      await assert.rejects(drain(), { code: '60' });
      assert.deepEqual(await journal.facts(), { journalLength: 1, parked: 0, fullyParked: 0 });
      assert.equal(await countOf(client, 'forecasts'), 1);
      await client.command({ query: 'RENAME TABLE elsewhere TO goal_changes' });
      assert.equal(await drain(), 1);
      assert.equal(await countOf(client, 'goals'), 1);
    },
  );

  await t.test('texts arrive as they were, whatever they hold', async (t) => {
    const { client, drain } = await setUp(t);
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 128 }),
      fc.string({ unit: fc.constantFrom(...'\\\t\n\r\0\b\fN\'"'), maxLength: 20 }),
    );
    let revision = 0;
    const property = fc.asyncProperty(
      fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 40 }),
      async (pairs) => {
        const first = revision + 1;
        for (const [skillId, name] of pairs) await addSkill(redis, ++revision, { skillId, name });
        await drain();
        const rows = await selectRows<{ skill_id: string; name: string }>(
          client,
          `SELECT skill_id, name FROM skill_changes WHERE revision >= ${first} ORDER BY revision`,
        );
        assert.deepEqual(
          rows.map(({ skill_id, name }) => [skill_id, name]),
          pairs,
        );
      },
    );
    await assertAsync(property, { numRuns: 25 });
    assert.equal((await journal.facts()).parked, 0);
  });

  await t.test('forecasts are noted in one command, up to a bound, and never in the way', async (t) => {
    await setUp(t);
    const rows = Array.from({ length: 500 }, (_, i) =>
      encodeForecastRow(servedForecast({ madeAt: firstAt + i })),
    );
    assert.equal(await note(redis, 1, rows.slice(0, 1), 800), 0, 'the script is loaded now');
    const before = await scriptCallsOf(redis);
    assert.equal(await note(redis, 0, rows, 800), 0);
    assert.equal((await scriptCallsOf(redis)) - before, 1);
    assert.equal(await note(redis, 0, rows, 800), 200);
    assert.equal(await note(redis, 0, rows, 800), 500);
    assert.equal(await note(redis, 0, [], 800), 0);
    assert.equal(await redis.xlen(forecastsKey(0)), 800);
    const kept = await redis.xrange(forecastsKey(0), '-', '+');
    assert.deepEqual(
      kept.map(([, fields]) => fieldsOf(fields).r),
      [...rows, ...rows.slice(0, 300)],
    );
    await redis.set(forecastsKey(3), 'no stream');
    const heard: [number, unknown][] = [];
    await recordForecasts(redis, 3, rows, 800, (...lost) => heard.push(lost));
    assert.deepEqual([heard.length, heard[0]?.[0]], [1, 500]);
    assert.match(String(heard[0]?.[1]), /WRONGTYPE/);
  });

  await t.test('the schedule drains it, one run at a time', async (t) => {
    const { client, drain } = await setUp(t);
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
    const runs = [1, 2].map(() => startRuns({ redisUrl, run, logger: silent }));
    t.after(() => Promise.all(runs.map((one) => one.close())));
    for (let i = 1; i <= 3; i++) {
      await addGoal(redis, firstAt, { userId: `learner-${i}` });
      await waitFor('the goal', async () => (await countOf(client, 'goals')) === i);
    }
    await Promise.all(runs.map((one) => one.close()));
    assert.equal(most, 1);
  });
});

const startRuns = (options: Omit<ScheduledRunsOptions, 'everyMs'>) =>
  startScheduledRuns(schedules.journal, { everyMs: 2000, ...options });

test('the journal waits for ClickHouse', { timeout: 600_000 }, async (t) => {
  // Before the hooks of what it uses, which run in the order of their registration.
  const closers = createClosers(silent, 30_000);
  t.after(() => closers.close());
  const redisUrl = await startTestRedis(t);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const journal = createJournal(redis, partitions);
  const dir = await tempDir(t);
  const options = { dir, port: await findFreePort(), password: 'a', analystPassword: 'b', logger: silent };
  let server = startClickhouse(options);
  closers.add('ClickHouse', () => server.stop(10_000));
  await server.ready;
  await ensureDatabase(server.clickhouseUrl);
  const client = connectWarehouse(server.clickhouseUrl);
  closers.add('client', () => client.close());
  await createSchema(client);
  await addGoal(redis, firstAt, { userId: 'before' });
  const log = heard();
  const drain = createJournalDrain({ journal, warehouse: createJournalWarehouse(client), logger: silent });
  const runs = startRuns({ redisUrl, run: drain, logger: log.logger });
  closers.add('runs', () => runs.close());
  await waitFor('the goal', async () => (await countOf(client, 'goals')) === 1);
  await server.stop(10_000);
  await addGoal(redis, firstAt, { userId: 'while away' });
  await waitFor('a failed run', () => log.lines().length > 0);
  assert.deepEqual(await journal.facts(), { journalLength: 1, parked: 0, fullyParked: 0 });
  server = startClickhouse(options);
  await server.ready;
  await waitFor('both goals', async () => (await countOf(client, 'goals')) === 2);
  await waitFor('its end', () => log.lines().length >= 2);
  assert.deepEqual(
    log.lines().map(({ level }) => level),
    [40, 30],
    'told once when it begins and once when it ends',
  );
});

test('a Redis that came back empty gets its schedule again', { timeout: 600_000 }, async (t) => {
  const redis = await startBareRedis(t);
  let count = 0;
  const run = async (): Promise<void> => {
    count += 1;
  };
  const runs = startRuns({ redisUrl: redis.url, run, logger: silent });
  t.after(() => runs.close());
  await waitFor('a run', () => count > 0);
  await redis.kill();
  await redis.start();
  const before = count;
  await waitFor('two more runs', () => count >= before + 2);
});

test('the service drains its journal, once more when it stops', { timeout: 600_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const service = await startService(t, { redisUrl, clickhouseUrl: url });
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const { call, get } = callerOf(service, service.key);
  const put = (path: string, body: object) => call({ method: 'PUT', path, body: JSON.stringify(body) });
  const written = await Promise.all([
    put('/api/v1/goals/u', { target_score: 1300, target_date: '2099-01-31' }),
    put('/api/v1/skills/algebra', { name: 'A\\N \\t', section: 'math', weight: 2 }),
  ]);
  assert.deepEqual(
    written.map(({ status }) => status),
    [200, 200],
  );
  await waitFor('the goal', async () => (await countOf(client, 'goals')) === 1);
  await waitFor('the skill', async () => (await countOf(client, 'skill_catalogue')) === 1);
  assert.deepEqual(await selectRows(client, 'SELECT user_id, target_score, target_date FROM goals'), [
    { user_id: 'u', target_score: 1300, target_date: '2099-01-31' },
  ]);
  assert.deepEqual(await selectRows(client, 'SELECT name, section, weight, revision FROM skill_catalogue'), [
    { name: 'A\\N \\t', section: 'math', weight: 2, revision: 1 },
  ]);
  await redis.xadd(`${journalKey(0)}:parked`, '*', 'k', 'goal');
  const checked = async () => (await get('/api/v1/health')).json.data.checks.pipeline;
  // Rows show in ClickHouse before they are removed from Redis.
  await waitFor('their removal', async () => (await checked()).journal_length === 0);
  assert.equal((await checked()).parked, 1);
  assert.equal((await put('/api/v1/goals/late', { target_score: 900 })).status, 200);
  const since = performance.now();
  assert.equal(await service.stop(), true);
  const tookMs = performance.now() - since;
  const goals = await countOf(client, 'goals');
  const { journalLength } = await createJournal(redis, defaultPartitions).facts();
  // The last run has three seconds at least. Where ClickHouse stood still for longer, the row stays in Redis.
  const isLeft = tookMs > 3000 && goals === 1 && journalLength === 1;
  assert.ok(goals === 2 || isLeft, `${goals} goals, ${journalLength} left after ${tookMs} ms`);
});

const fieldsOf = (fields: readonly string[]): Record<string, string> =>
  Object.fromEntries(fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? '']] : [])));

interface LogLine {
  readonly level: number;
  readonly parked?: string;
  readonly id?: string;
}

/** A logger whose lines can be read. */
function heard() {
  const lines: LogLine[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      lines.push(JSON.parse(chunk.toString()) as LogLine);
      done();
    },
  });
  return { logger: pino({ level: 'info' }, stream), lines: () => lines };
}

/** Commands that came over the wire to run scripts, since the server started. */
async function scriptCallsOf(redis: Redis): Promise<number> {
  const calls = (await redis.info('commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
  return [...calls].reduce((total, [, count]) => total + Number(count), 0);
}
