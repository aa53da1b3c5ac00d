import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { erasuresKey, outboxKey, partitionOf } from '../../src/store/redis/keys.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { compareStores, resendAll } from '../support/fault/compare.js';
import { orderThreads, startServiceProcess, startSplit } from '../support/fault/deployment.js';
import type { Gateway } from '../support/fault/gateway.js';
import { confirm, createEntry, type Entry } from '../support/fault/ledger.js';
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { clickhouseOf, redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { askUntil, waitFor } from '../support/wait.js';

const scope = { after };
const deployment = await startSplit(scope);
const redis = (await redisOf(scope, deployment.redisUrl)) as Redis;
const clickhouse = clickhouseOf(scope, deployment);
const gateway = deployment.gateway as Gateway;
const [tenant = ''] = deployment.tenants;
const caller = callerOf(deployment, tenant);
const limit = { timeout: 600_000 };
const entries: Entry[] = [];
const learners: string[] = [];
const partition = (user: string): number => partitionOf(tenant, user, 16);

/** A learner with 30 answers in two commits. */
async function createLearner(user: string): Promise<Entry[]> {
  const own = Array.from({ length: 30 }, (_, i) =>
    createEntry(tenant, {
      user_id: user,
      skill_id: i % 3 === 0 ? 'algebra' : 'reading',
      is_correct: i % 4 > 0,
      item_id: `item-${i}`,
      event_id: `${user}-${i}`,
    }),
  );
  learners.push(user);
  entries.push(...own);
  for (const part of [own.slice(0, 15), own.slice(15)]) {
    const { status, json, text } = await caller.trackAll(part.map(({ event }) => event));
    assert.equal(status, 200, text);
    part.forEach((entry, i) => {
      confirm(entry, json.data.results[i].data, false);
    });
  }
  return own;
}

/** @returns null if the connection was lost */
function retract(entry: Entry | undefined): Promise<JsonAnswer | null> {
  assert.ok(entry);
  entry.retracted = true;
  const { user_id: user, event_id: id } = entry.event;
  const path = `/api/v1/learners/${user}/attempts/${id}`;
  return caller.call({ method: 'DELETE', path }).catch(() => null);
}

const assertRetracted = async (entry: Entry | undefined): Promise<void> =>
  assert.equal((await retract(entry))?.status, 200);

/** Erases the learner and starts a new history, which must remain. @returns the status URL */
async function eraseLearner(user: string, own: readonly Entry[]): Promise<string> {
  const { status, json } = await caller.call({ method: 'DELETE', path: `/api/v1/learners/${user}` });
  assert.equal(status, 202);
  for (const entry of own) entries.splice(entries.indexOf(entry), 1);
  await createLearner(user);
  return json.data.status_url;
}

const waitForDrain = (user: string): Promise<number> =>
  waitFor('an empty outbox', async () => (await redis.xlen(outboxKey(partition(user)))) === 0);

/** A pipeline that resumes may have to repair sums. */
async function assertStoresAgree(): Promise<void> {
  for (const user of learners) await waitForDrain(user);
  let problems: string[] = [];
  await waitFor('equal stores', async () => {
    const found = await compareStores(deployment, clickhouse, entries, learners);
    problems = found.differences;
    return found.lost + found.doubled + problems.length === 0;
  }).catch(() => assert.deepEqual(problems, []));
}

test('A retraction is applied once if the API process is killed after the commit', limit, async () => {
  const [first, second] = await createLearner('api');
  // Loads the script into Redis and starts the thread.
  await assertRetracted(first);
  const [api = 0] = deployment.pids('api');
  orderThreads(deployment.orders, api, 'kill after the commit');
  await waitFor('the order to be read', () => !existsSync(join(deployment.orders, `${api}`)));
  assert.equal(await retract(second), null);
  const again = await askUntil(
    'the next process',
    () => retract(second),
    (response) => response !== null && response.status !== 503,
  );
  assert.deepEqual([again?.status, again?.json.error?.code], [404, 'NOT_FOUND']);
  await assertStoresAgree();
});

const rowsDeleted = /^DELETE FROM attempts/;
const sumsDeleted = /^DELETE FROM learner_sums/;
const sumsInserted = /^INSERT INTO learner_sums/;
const rowsInserted = /^INSERT INTO attempts/;
/** The steps of a rewrite in ClickHouse. */
const steps = [
  ...[rowsDeleted, /^DELETE FROM daily_skill/, /^INSERT INTO daily_skill/],
  ...[sumsDeleted, sumsInserted, rowsInserted],
];

async function intercept(mode: 'deaf' | 'late', statements: RegExp): Promise<void> {
  const before = gateway.cuts();
  gateway.set(mode, statements);
  await waitFor(`${statements}`, () => gateway.cuts() > before);
}

test('The pipeline completes a retraction once if it is killed after any step', limit, async () => {
  const own = await createLearner('pipeline');
  await waitForDrain('pipeline');
  await assertRetracted(own[4]);
  for (const step of steps) {
    await intercept('deaf', step);
    sendSignal(deployment.pids('pipeline')[0] ?? 0, 'SIGKILL');
    gateway.set('pass');
  }
  await assertStoresAgree();
});

const late = [
  { what: 'an insert of old rows', statement: rowsInserted, end: 'resumes' },
  { what: 'a deletion of rows', statement: rowsDeleted, end: 'resumes' },
  { what: 'a deletion of an erased learner', statement: rowsDeleted, end: 'resumes', erases: true },
  { what: 'an insert of sums', statement: sumsInserted, end: 'resumes' },
  { what: 'an insert of sums', statement: sumsInserted, end: 'is killed' },
  { what: 'a deletion of sums', statement: sumsDeleted, end: 'is killed' },
] as const;
for (const [i, { what, statement, end, ...rest }] of late.entries())
  test(
    `The pipeline ignores ${what} that arrives after another process is done and its sender ${end}`,
    limit,
    async (t) => {
      const user = `late-${i}`;
      // Old rows are in flight before the retraction, the other statements after it.
      const early = statement === rowsInserted ? intercept('late', statement) : null;
      const own = await createLearner(user);
      await (early ?? waitForDrain(user));
      const intercepted = early ?? intercept('late', statement);
      const statusUrl = 'erases' in rest ? await eraseLearner(user, own) : null;
      if (statusUrl === null) await assertRetracted(own[3]);
      await intercepted;
      const [sleeper = 0] = deployment.pids('pipeline');
      sendSignal(sleeper, 'SIGSTOP');
      const path = await tempDir(t);
      const other = await startServiceProcess(t, deployment.orders, {
        DATA_DIR: path,
        REDIS_URL: deployment.redisUrl,
        CLICKHOUSE_URL: deployment.clickhouseUrl,
        ROLE: 'pipeline',
        PORT: '',
        FIT_INTERVAL_HOURS: '0',
      });
      await waitForDrain(user);
      if (statusUrl !== null) await erasureDone(caller, statusUrl);
      await other.stop();
      if (end === 'is killed') sendSignal(sleeper, 'SIGKILL');
      gateway.set('pass');
      await gateway.caughtUp();
      if (end === 'resumes') sendSignal(sleeper, 'SIGCONT');
      await assertStoresAgree();
    },
  );

test('All stores agree after the retractions, and all repeats are replayed', limit, async () => {
  assert.equal(await resendAll(deployment, entries), 0);
  await assertStoresAgree();
  const found = await auditsOf(redis, clickhouse)();
  assert.deepEqual([found.mismatches, found.notCompared], [[], []]);
  const env = { REDIS_URL: deployment.redisUrl, CLICKHOUSE_URL: deployment.clickhouseUrl };
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
  assert.equal(await redis.exists(erasuresKey(partition('pipeline'))), 0);
});
