/** Answers that are taken back while the processes that do it are killed, or stand still and wake up when others went on. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { erasuresKey, outboxKey, partitionOf } from '../../src/store/redis/keys.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { compare, type Findings, resendAll } from '../support/fault/check.js';
import type { Gateway } from '../support/fault/gateway.js';
import { confirm, type Entry, newEntry } from '../support/fault/ledger.js';
import { startSplit } from '../support/fault/stand.js';
import { startServiceProcess } from '../support/fault/supervised.js';
import { orderThreads } from '../support/fault/thread-orders.js';
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { clickhouseOf, dataFolder, redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const scope = { after };
const stand = await startSplit(scope, { fsync: 'everysec' });
const redis = (await redisOf(scope, stand.redisUrl)) as Redis;
const clickhouse = clickhouseOf(scope, stand);
const gateway = stand.gateway as Gateway;
const [tenant = ''] = stand.tenants;
const caller = callerOf(stand, tenant);
const audit = auditsOf(redis, clickhouse);
const limit = { timeout: 600_000 };
const drainLimitMs = 120_000;

const entries: Entry[] = [];
const learners: string[] = [];
const partition = (user: string): number => partitionOf(tenant, user, 16);

/** A learner with so many answers, in two commits. */
async function plant(user: string, count: number): Promise<Entry[]> {
  const own = Array.from({ length: count }, (_, i) =>
    newEntry(tenant, {
      user_id: user,
      skill_id: i % 3 === 0 ? 'algebra' : 'reading',
      is_correct: i % 4 > 0,
      item_id: `item-${i}`,
      event_id: `${user}-${i}`,
    }),
  );
  learners.push(user);
  entries.push(...own);
  for (const part of [own.slice(0, count >> 1), own.slice(count >> 1)]) {
    const { status, json, text } = await caller.trackAll(part.map(({ event }) => event));
    assert.equal(status, 200, text);
    part.forEach((entry, i) => {
      confirm(entry, json.data.results[i].data, false);
    });
  }
  return own;
}

/** @returns null where no answer comes */
function takeBack(entry: Entry | undefined): Promise<JsonAnswer | null> {
  assert.ok(entry);
  entry.takenBack = true;
  const { user_id: user, event_id: id } = entry.event;
  const path = `/api/v1/learners/${user}/attempts/${id}`;
  // A connection that is cut is what these tests are about.
  return caller.call({ method: 'DELETE', path }).catch(() => null);
}

async function takenBack(entry: Entry | undefined): Promise<void> {
  const answer = await takeBack(entry);
  assert.equal(answer?.status, 200, answer?.text);
}

const emptied = (user: string) =>
  waitFor('an empty outbox', async () => (await redis.xlen(outboxKey(partition(user)))) === 0, drainLimitMs);

/** Sums may be wrong until who woke up has compared them once more. */
async function assertSame(): Promise<void> {
  for (const user of learners) await emptied(user);
  const ask = (): Promise<Findings> => compare(stand, clickhouse, entries, learners);
  const isSame = ({ lost, doubled, differences }: Findings): boolean =>
    lost + doubled + differences.length === 0;
  const found = await ask();
  if (isSame(found)) return;
  await waitFor(`${found.differences.join('\n')} to be mended`, async () => isSame(await ask()), 30_000);
}

test('kill -9 of the process that takes answers, between the commit and its answer', limit, async () => {
  const [first, second] = await plant('api', 30);
  // Redis knows the script from here on, and the thread is there.
  await takenBack(first);
  const api = stand.pids('api')[0] as number;
  orderThreads(stand.orders, api, 'kill after the commit');
  await waitFor('the order to be taken', () => !existsSync(join(stand.orders, `${api}`)));
  assert.equal(await takeBack(second), null);
  let again: JsonAnswer | null = null;
  await waitFor('the next process', async () => {
    again = await takeBack(second);
    return again !== null && again.status !== 503;
  });
  const { status, json } = again as unknown as JsonAnswer;
  assert.deepEqual([status, json.error?.code], [404, 'NOT_FOUND'], 'it is done already');
  await assertSame();
});

/** The steps of a rewrite in ClickHouse, each as it is told apart on the way there. */
const rowsGo = /^DELETE FROM attempts/;
const ownSumsGo = /^DELETE FROM learner_sums/;
const sumsGo = /^DELETE FROM daily_skill/;
const sumsCome = /^INSERT INTO daily_skill/;
const ownSumsCome = /^INSERT INTO learner_sums/;
const rowsCome = /^INSERT INTO attempts/;
const steps = [rowsGo, sumsGo, sumsCome, ownSumsGo, ownSumsCome, rowsCome];

async function stopped(mode: 'deaf' | 'late', statements: RegExp): Promise<void> {
  const before = gateway.cuts();
  gateway.set(mode, statements);
  await waitFor(`${statements}`, () => gateway.cuts() > before, drainLimitMs);
}

test('kill -9 of the pipeline after each step of a rewrite that ClickHouse has done', limit, async () => {
  const own = await plant('pipeline', 30);
  await emptied('pipeline');
  await takenBack(own[4]);
  for (const step of steps) {
    await stopped('deaf', step);
    sendSignal(stand.pids('pipeline')[0] as number, 'SIGKILL');
    gateway.set('pass');
  }
  await assertSame();
});

/** Another pipeline, with a way to ClickHouse of its own. */
async function startOther(t: Parameters<typeof startServiceProcess>[0]) {
  const { path, remove } = await dataFolder();
  t.after(remove);
  const env = {
    DATA_DIR: path,
    REDIS_URL: stand.redisUrl,
    CLICKHOUSE_URL: stand.clickhouseUrl,
    ROLE: 'pipeline',
    PORT: '',
    FIT_INTERVAL_HOURS: '0',
  };
  return startServiceProcess(t, { name: 'other', orders: stand.orders, env });
}

interface Sleep {
  readonly what: string;
  readonly statement: RegExp;
  readonly end: 'wakes up' | 'is killed';
}
const sleeps: readonly Sleep[] = [
  { what: 'rows of before', statement: rowsCome, end: 'wakes up' },
  { what: 'the deletion of rows', statement: rowsGo, end: 'wakes up' },
  { what: 'the sums of the learner', statement: ownSumsCome, end: 'wakes up' },
  { what: 'the sums of the learner', statement: ownSumsCome, end: 'is killed' },
  { what: "the deletion of the learner's sums", statement: ownSumsGo, end: 'is killed' },
];
for (const [i, { what, statement, end }] of sleeps.entries()) {
  test(
    `a pipeline that sleeps and ${end}, with ${what} on the way when another one has done it all`,
    limit,
    async (t) => {
      const user = `sleeper-${i}`;
      // Rows of before are held when they come, everything else when it is ordered.
      const block = statement === rowsCome ? stopped('late', statement) : null;
      const own = await plant(user, 30);
      await (block ?? emptied(user));
      const held = block ?? stopped('late', statement);
      await takenBack(own[3]);
      await held;
      const sleeper = stand.pids('pipeline')[0] as number;
      sendSignal(sleeper, 'SIGSTOP');
      const other = await startOther(t);
      await emptied(user);
      await other.stop();
      if (end === 'is killed') sendSignal(sleeper, 'SIGKILL');
      gateway.set('pass');
      await gateway.caughtUp();
      if (end === 'wakes up') sendSignal(sleeper, 'SIGCONT');
      await assertSame();
    },
  );
}

test('in the end every repeat counts nothing, and everything agrees', limit, async () => {
  assert.equal(await resendAll(stand, entries), 0);
  await assertSame();
  const found = await audit();
  assert.deepEqual([found.mismatches, found.notCompared], [[], []]);
  const env = { REDIS_URL: stand.redisUrl, CLICKHOUSE_URL: stand.clickhouseUrl };
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
  assert.equal(await redis.exists(erasuresKey(partition('pipeline'))), 0);
});
