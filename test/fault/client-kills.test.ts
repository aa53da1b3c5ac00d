import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Skilltrace } from '../../src/client/index.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { startServiceProcess } from '../support/fault/deployment.js';
import { isLongForm, progress } from '../support/runner/long-form.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { clickhouseOf } from '../support/servers/service.js';
import { dataFolder } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** In the long form, the quota (requests per minute) is less than the answers need. */
const form = isLongForm
  ? { answers: 20_000, learners: 500, kills: 5, quota: 60 }
  : { answers: 300, learners: 30, kills: 1, quota: 1_000_000 };
const maxQueued = 4000;
const key = 'client-key';

/** Uses up the quota, as another program with the same key might. */
async function exhaustQuota(baseUrl: string): Promise<void> {
  for (let status = 200; status !== 429; ) {
    const request = fetch(`${baseUrl}/api/v1/skills`, { headers: { 'X-API-Key': key } });
    const response = await request.catch(() => null);
    status = response?.status ?? 0;
    await response?.arrayBuffer();
    if (status === 0) await sleep(50);
  }
}

interface StoredLearner {
  readonly user_id: string;
  readonly items: readonly string[];
  readonly ids: number;
  readonly lastSeq: number;
}

const learnersQuery = `SELECT user_id, arrayMap(x -> x.2, arraySort(groupArray((learner_seq, item_id)))) AS items,
  toUInt32(uniqExact(event_id)) AS ids, toUInt32(max(learner_seq)) AS lastSeq FROM attempts GROUP BY user_id`;

test('Skilltrace (client) delivers each answer once and in order while the service is killed', async (t) => {
  const { path: dataDir, remove } = await dataFolder();
  const orders = join(dataDir, 'orders');
  await mkdir(orders);
  const { clickhouseUrl } = await freshDatabase();
  const port = await findFreePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const service = await startServiceProcess(t, orders, {
    DATA_DIR: dataDir,
    PORT: `${port}`,
    API_KEYS: `${key}:default:${form.quota}`,
    CLICKHOUSE_URL: clickhouseUrl,
    // Redis ends with the service and must lose nothing.
    EMBEDDED_REDIS_FSYNC: 'always',
    FIT_INTERVAL_HOURS: '0',
    AUDIT_INTERVAL_HOURS: '0',
  });
  t.after(remove);
  const statuses = { lost: 0, limited: 0 };
  const undelivered: string[] = [];
  const client = new Skilltrace({
    baseUrl,
    apiKey: key,
    timeoutMs: 5000,
    retry: { longestDelayMs: 2000 },
    queue: { lingerMs: 50 },
    onUndelivered: ({ event_id }, { code }) => undelivered.push(`${event_id} ${code}`),
    fetch: async (...request) => {
      const response = await fetch(...request).catch((error: unknown) => {
        statuses.lost += 1;
        throw error;
      });
      if (response.status === 429) statuses.limited += 1;
      return response;
    },
  });
  t.after(() => client.close({ timeoutMs: 0 }));

  const expected = new Map<string, string[]>();
  let killed = 0;
  for (let i = 0; i < form.answers; i++) {
    const user_id = `learner-${i % form.learners}`;
    const item_id = `item-${i}`;
    expected.set(user_id, [...(expected.get(user_id) ?? []), item_id]);
    await client.track({ user_id, item_id, skill_id: `skill-${i % 7}`, is_correct: i % 3 > 0 });
    while (client.queued >= maxQueued) await sleep(5);
    const settled = i + 1 - client.queued;
    if (killed < form.kills && settled >= ((killed + 0.5) * form.answers) / (form.kills + 1)) {
      process.kill(service.pid(), 'SIGKILL');
      killed += 1;
      progress(`kill ${killed} of ${form.kills} after ${settled} answers`);
      if (isLongForm && killed === 2) await exhaustQuota(baseUrl);
    } else if (i % 20 === 0) await sleep(10);
  }
  for (; killed < form.kills; killed++) {
    process.kill(service.pid(), 'SIGKILL');
    await client.flush();
  }
  await client.flush();

  const clickhouse = clickhouseOf(t, { clickhouseUrl });
  let learners: StoredLearner[] = [];
  await waitFor('all answers in ClickHouse', async () => {
    learners = await selectRows<StoredLearner>(clickhouse, learnersQuery);
    return learners.reduce((sum, { items }) => sum + items.length, 0) >= form.answers;
  });
  assert.deepEqual(undelivered, []);
  assert.ok(statuses.lost > 0, 'no request was lost');
  if (isLongForm) assert.ok(statuses.limited > 0, 'the quota was never exceeded');
  for (const { user_id, items, ids, lastSeq } of learners) {
    assert.deepEqual(items, expected.get(user_id), user_id);
    assert.deepEqual([ids, lastSeq], [items.length, items.length], user_id);
  }
  assert.equal(learners.length, form.learners);
});
