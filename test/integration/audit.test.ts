/** The audit: silent while answers keep coming, and certain of every row that is lost or there twice. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { ClickHouseClient } from '@clickhouse/client';
import type { RedisClient } from '../../src/store/client.js';
import { outboxKey, parkedKey, partitionOf } from '../../src/store/keys.js';
import { auditsOf, namesOf } from '../support/audits.js';
import { endOf, startCommand } from '../support/command.js';
import { startCrowd } from '../support/crowd.js';
import { startTestClickhouse, startTestRedis } from '../support/embedded.js';
import { type Caller, callerOf, event } from '../support/http.js';
import { clickhouseOf, keysOf, redisOf, type Service, startService } from '../support/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';
import { testDatabase } from '../support/warehouse.js';

const long = { timeout: 240_000 };
const names = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** Batches from a tenant of its own, until it is told to stop. @returns answers that were counted */
function startBatches(caller: Caller): () => Promise<number> {
  let stopped = false;
  let counted = 0;
  const running = (async () => {
    for (let n = 0; !stopped; n++) {
      const events = names(40, 'b').map((user_id, i) =>
        event({ user_id, skill_id: `s${i % 5}`, is_correct: i % 3 > 0, event_id: `${n}/${i}` }),
      );
      const { status, text } = await caller.trackAll(events);
      assert.equal(status, 200, text);
      counted += events.length;
      await sleep(50);
    }
  })();
  running.catch(() => undefined);
  return async () => {
    stopped = true;
    await running;
    return counted;
  };
}

async function importRows(t: TestContext, { dataDir }: Service, rows: number): Promise<void> {
  const file = join(await tempDir(t), 'log.csv.gz');
  const lines = Array.from({ length: rows }, (_, i) => `i${i % 90},s${i % 7},${i % 4 === 0 ? 0 : 1},${i}`);
  writeFileSync(file, gzipSync(`user_id,skill_id,correct,order\n${lines.join('\n')}\n`));
  const ended = await endOf(startCommand(t, 'import', { DATA_DIR: dataDir }, file, '--tenant', 'imported'));
  assert.equal(ended.code, 0, ended.err);
}

test(
  'audits that run while answers, batches and imports arrive and are drained find nothing',
  long,
  async (t) => {
    const service = await startService(t);
    const [redis, clickhouse] = [await redisOf(t, service.redisUrl), clickhouseOf(t, service)];
    const audit = auditsOf(redis, clickhouse);
    const crowd = startCrowd(callerOf(service, service.key), names(12, 'c'));
    const keys = await keysOf(t, service);
    const batches = startBatches(callerOf(service, await keys.add({ tenant: 'batches' })));
    const importing = importRows(t, service, 4000);
    let audits = 0;
    const isOver = importing.then(() => true);
    while (!(await Promise.race([isOver, sleep(10, false)])) || audits < 8) {
      const { mismatches, notCompared } = await audit();
      assert.deepEqual([namesOf(mismatches), notCompared], [[], []]);
      audits++;
    }
    const batched = await batches();
    await crowd.stop();
    const { totals, mismatches } = await audit();
    const answers = crowd.confirmed.length + batched + 4000;
    assert.deepEqual(
      [totals.accepted, totals.stored + totals.waiting, namesOf(mismatches)],
      [answers, answers, []],
    );
    t.diagnostic(`${audits} audits beside ${answers} answers`);
  },
);

test('audits of a service whose ClickHouse is killed again and again find nothing', long, async (t) => {
  const service = await startService(t);
  const [redis, clickhouse] = [await redisOf(t, service.redisUrl), clickhouseOf(t, service)];
  const audit = auditsOf(redis, clickhouse);
  const crowd = startCrowd(callerOf(service, service.key), names(12, 'c'));
  let compared = 0;
  let away = 0;
  for (let kills = 0; kills < 4; kills++) {
    await sleep(1500);
    process.kill(clickhousePid(service), 'SIGKILL');
    const told = await audit().catch(() => null);
    if (told === null) away++;
    else assert.deepEqual(namesOf(told.mismatches), []);
    await waitFor('an audit', async () => {
      const report = await audit().catch(() => null);
      if (report !== null) assert.deepEqual(namesOf(report.mismatches), []);
      if (report?.notCompared.length === 0) compared++;
      return report?.notCompared.length === 0;
    });
  }
  await crowd.stop();
  assert.deepEqual(namesOf((await audit()).mismatches), []);
  t.diagnostic(`${compared} audits compared all, ${away} found ClickHouse away`);
});

const clickhousePid = ({ dataDir }: Service): number => {
  const servers = JSON.parse(readFileSync(join(dataDir, 'servers.json'), 'utf8'));
  return servers.clickhouse.pid;
};

/** A command of the test's own on the tables. */
type Damage = (tenant: string) => Promise<unknown>;

interface Stage {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  /** Puts answers of the tenant into Redis; they stay in the outbox. */
  answer(tenant: string): Promise<void>;
  /** Starts the pipeline, and waits until the outbox is empty. */
  drain(): Promise<void>;
}

const answersOfEach = 24;

/** Answers and pipeline apart, on servers of their own. */
async function stageOf(t: TestContext): Promise<Stage> {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), startTestClickhouse(t)]);
  const { url, client: clickhouse } = await testDatabase(t, clickhouseUrl);
  const servers = { redisUrl, clickhouseUrl: url };
  const api = await startService(t, { ...servers, role: 'api' });
  const [redis, keys] = [await redisOf(t, redisUrl), await keysOf(t, api)];
  return {
    redis,
    clickhouse,
    answer: async (tenant) => {
      const caller = callerOf(api, await keys.add({ tenant }));
      const events = Array.from({ length: answersOfEach }, (_, i) =>
        event({ user_id: `u${i % 6}`, skill_id: `s${i % 2}`, is_correct: i % 3 > 0 }),
      );
      assert.equal((await caller.trackAll(events)).status, 200);
    },
    drain: async () => {
      const pipeline = await startService(t, { ...servers, role: 'all', auditIntervalHours: 0 });
      await waitFor('an empty outbox', async () => (await waitingIn(redis)) === 0);
      await pipeline.stop();
    },
  };
}

const partitions = Array.from({ length: 16 }, (_, partition) => partition);
const waitingIn = async (redis: RedisClient): Promise<number> =>
  (await Promise.all(partitions.map((p) => redis.xlen(outboxKey(p))))).reduce((sum, n) => sum + n, 0);

const attemptsOf = (tenant: string): string => `FROM attempts WHERE tenant = '${tenant}' AND user_id = 'u1'`;
const first = 'ORDER BY learner_seq LIMIT 1';
/** Where partition and outbox of the tenant's learner are. */
const outboxOf = (tenant: string): string => outboxKey(partitionOf(tenant, 'u1', 16));

test('each kind of damage to what is stored is found and named, and nothing else', long, async (t) => {
  const { redis, clickhouse, answer, drain } = await stageOf(t);
  const sql = (query: string): Promise<unknown> =>
    clickhouse.command({ query, clickhouse_settings: { insert_deduplicate: 0, mutations_sync: '1' } });
  const view = (tenant: string) => `tenant = '${tenant}'`;
  const damages: Record<string, { do: Damage; found: readonly string[] }> = {
    sound: { do: async () => undefined, found: [] },
    'row-deleted': {
      do: (tenant) =>
        sql(`DELETE FROM attempts WHERE ${view(tenant)} AND user_id = 'u1' AND learner_seq = 2`),
      found: [
        'missing attempts 4 3',
        'rollup daily_learner_skill.attempts 23 24',
        'rollup daily_learner_skill.correct 15 16',
        'rollup daily_skill.attempts 23 24',
        'rollup daily_skill.correct 15 16',
      ],
    },
    'row-twice': {
      do: (tenant) => sql(`INSERT INTO attempts SELECT * ${attemptsOf(tenant)} ${first}`),
      found: ['doubled_id attempts 0 1', 'surplus attempts 4 5'],
    },
    'number-twice': {
      do: (tenant) =>
        sql(
          `INSERT INTO attempts SELECT * REPLACE (outbox_ms - 60000 AS outbox_ms) ${attemptsOf(tenant)} ${first}`,
        ),
      found: ['doubled_number attempts 0 1', 'surplus attempts 4 5'],
    },
    'rollup-deleted': {
      do: (tenant) =>
        sql(`DELETE FROM daily_learner_skill WHERE ${view(tenant)} AND user_id = 'u1' AND skill_id = 's1'`),
      found: ['rollup daily_learner_skill.attempts 24 20', 'rollup daily_learner_skill.correct 16 12'],
    },
    'rollup-twice': {
      do: (tenant) =>
        sql(`INSERT INTO daily_skill SELECT * FROM daily_skill WHERE ${view(tenant)} AND skill_id = 's1'`),
      found: ['rollup daily_skill.attempts 24 36', 'rollup daily_skill.correct 16 24'],
    },
  };
  for (const tenant of Object.keys(damages)) await answer(tenant);
  const audit = auditsOf(redis, clickhouse);
  const still = { patienceMs: 0 };
  assert.deepEqual((await audit(still)).mismatches, [], 'all of it waits in the outbox');
  await drain();
  assert.deepEqual((await audit(still)).mismatches, []);
  for (const [tenant, damage] of Object.entries(damages)) {
    await damage.do(tenant);
    const { mismatches, notCompared } = await audit(still);
    const own = namesOf(mismatches.filter((mismatch) => mismatch.tenant === tenant));
    assert.deepEqual([own, notCompared], [damage.found.map((name) => `${tenant} ${name}`), []]);
  }
});

test(
  'rows that are gone from the outbox or from the parked ones are found; those that are there are no matter',
  long,
  async (t) => {
    const { redis, clickhouse, answer, drain } = await stageOf(t);
    for (const tenant of ['entry-deleted', 'parked', 'parked-deleted']) await answer(tenant);
    const audit = auditsOf(redis, clickhouse);
    const still = { patienceMs: 0 };
    const park = async (tenant: string): Promise<string> => {
      const [[id, fields]] = (await redis.xrange(outboxOf(tenant), '-', '+')).filter(([, row]) =>
        row[1]?.startsWith(`${tenant}\tu1\t`),
      ) as [[string, string[]]];
      const parked = parkedKey(outboxOf(tenant));
      await redis.xadd(parked, '*', 'r', fields[1] as string, 'id', id, 'reason', 'refused');
      await redis.xdel(outboxOf(tenant), id);
      return parked;
    };
    const outbox = outboxOf('entry-deleted');
    const rows = (await redis.xrange(outbox, '-', '+')).filter(([, row]) =>
      row[1]?.startsWith('entry-deleted\tu1\t'),
    );
    await redis.xdel(outbox, rows[0]?.[0] as string);
    await park('parked');
    const parked = await park('parked-deleted');
    const lost = ['entry-deleted missing attempts 4 3'];
    assert.deepEqual(namesOf((await audit(still)).mismatches), lost, 'while they wait');
    await drain();
    const { mismatches, totals } = await audit(still);
    assert.deepEqual([namesOf(mismatches), totals.parked], [lost, 2]);
    await redis.del(parked);
    assert.deepEqual(namesOf((await audit(still)).mismatches), [
      ...lost,
      'parked-deleted missing attempts 8 7',
    ]);
  },
);
