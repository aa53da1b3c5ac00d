/** Answers of the client while the service is killed and its key's quota is used up: each is counted once, in order. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Skilltrace } from '../../src/client/index.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { startServiceProcess } from '../support/fault/supervised.js';
import { isLongForm, progress } from '../support/runner/long-form.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { dataFolder, type Scoped } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

/** `quota` in requests a minute: less than the answers need. */
const form = isLongForm
  ? { answers: 20_000, learners: 500, kills: 5, quota: 60 }
  : { answers: 600, learners: 30, kills: 1, quota: 1_000_000 };
const unsettledAtMost = 4000;
const key = 'client-key';

async function startKillable(t: Scoped) {
  const { path: dataDir, remove } = await dataFolder();
  t.after(remove);
  const orders = join(dataDir, 'orders');
  await mkdir(orders);
  const { clickhouseUrl } = await freshDatabase();
  const port = await findFreePort();
  const env = {
    DATA_DIR: dataDir,
    PORT: `${port}`,
    API_KEYS: `${key}:default:${form.quota}`,
    CLICKHOUSE_URL: clickhouseUrl,
    // What is confirmed outlives the Redis that ends with the service.
    EMBEDDED_REDIS_FSYNC: 'always',
    FIT_INTERVAL_HOURS: '0',
    AUDIT_INTERVAL_HOURS: '0',
  };
  const service = await startServiceProcess(t, { name: 'service', orders, env });
  return { baseUrl: `http://127.0.0.1:${port}`, clickhouseUrl, service };
}

const counts: Record<string, number> = {};
const note = (what: string): void => {
  counts[what] = (counts[what] ?? 0) + 1;
};

/** Notes each answer's status, as a platform's own instrumentation would. */
const notingFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request).catch((error: unknown) => {
    note('no answer');
    throw error;
  });
  note(`${response.status}`);
  return response;
};

/** Takes the rest of the window, as another program with the same key might. */
async function useUp(baseUrl: string): Promise<void> {
  for (let status = 200; status !== 429; ) {
    const response = await fetch(`${baseUrl}/api/v1/skills`, { headers: { 'X-API-Key': key } }).catch(
      () => null,
    );
    status = response?.status ?? 0;
    await response?.arrayBuffer();
    if (status === 0) await sleep(50);
  }
}

interface Row {
  readonly user_id: string;
  readonly items: readonly string[];
  readonly ids: number;
  readonly lastSeq: number;
}

async function storedRows(t: Scoped, clickhouseUrl: string): Promise<Row[]> {
  const clickhouse = connectWarehouse(clickhouseUrl);
  t.after(() => clickhouse.close());
  const read = () =>
    selectRows<Row>(
      clickhouse,
      `SELECT user_id, arrayMap(x -> x.2, arraySort(groupArray((learner_seq, item_id)))) AS items,
        toUInt32(uniqExact(event_id)) AS ids, toUInt32(max(learner_seq)) AS lastSeq FROM attempts GROUP BY user_id`,
    );
  let rows: Row[] = [];
  await waitFor('all answers in ClickHouse', async () => {
    rows = await read();
    return rows.reduce((sum, { items }) => sum + items.length, 0) >= form.answers;
  });
  return rows;
}

test('every answer is counted once and in the order of its learner', async (t) => {
  const { baseUrl, clickhouseUrl, service } = await startKillable(t);
  const undelivered: string[] = [];
  const client = new Skilltrace({
    baseUrl,
    apiKey: key,
    fetch: notingFetch,
    timeoutMs: 5000,
    retry: { longestDelayMs: 2000 },
    queue: { lingerMs: 50 },
    onUndelivered: ({ event_id }, { code }) => undelivered.push(`${event_id} ${code}`),
  });
  t.after(() => client.close({ timeoutMs: 0 }));
  const expected = new Map<string, string[]>();
  let killed = 0;
  for (let i = 0; i < form.answers; i++) {
    const user_id = `learner-${i % form.learners}`;
    const item_id = `item-${i}`;
    expected.set(user_id, [...(expected.get(user_id) ?? []), item_id]);
    await client.track({ user_id, item_id, skill_id: `skill-${i % 7}`, is_correct: i % 3 > 0 });
    while (client.queued >= unsettledAtMost) await sleep(5);
    const settled = i + 1 - client.queued;
    if (killed < form.kills && settled >= ((killed + 0.5) * form.answers) / (form.kills + 1)) {
      process.kill(service.pid(), 'SIGKILL');
      killed += 1;
      progress(`kill ${killed} of ${form.kills} after ${settled} answers`);
      if (isLongForm && killed === 2) await useUp(baseUrl);
    } else if (i % 20 === 0) await sleep(10);
  }
  for (; killed < form.kills; killed++) {
    process.kill(service.pid(), 'SIGKILL');
    await client.flush();
  }
  await client.flush();
  const rows = await storedRows(t, clickhouseUrl);
  process.stdout.write(
    `${JSON.stringify({ ...form, killed, undelivered: undelivered.length, requests: counts })}\n`,
  );
  assert.deepEqual(undelivered, []);
  if (isLongForm) assert.ok((counts['429'] ?? 0) > 0, 'the quota was used up');
  assert.ok((counts['no answer'] ?? 0) > 0, 'the service was away');
  for (const { user_id, items, ids, lastSeq } of rows) {
    assert.deepEqual(items, expected.get(user_id), user_id);
    assert.deepEqual([ids, lastSeq], [items.length, items.length], user_id);
  }
  assert.equal(rows.length, form.learners);
});
