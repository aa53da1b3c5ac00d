/** Three services write the same learners at once: every answer is counted once, and nobody tries for ever. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, redisOf, startSecondApi, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const others = await Promise.all([1, 2].map(() => startSecondApi({ after }, service)));
const callers = [service, ...others].map((at) => callerOf(at, at.key));
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);

const rounds = 25;
/** A hot one in every batch, some that often meet, and those of one client alone. */
const learnersOf = (client: number, round: number): string[] => [
  'hot',
  ...Array.from({ length: 10 }, (_, i) => `shared-${(round + 3 * i) % 20}`),
  ...Array.from({ length: 20 }, (_, i) => `own-${client}-${i}`),
];

const batches = callers.map((_, client) =>
  Array.from({ length: rounds }, (_, round) =>
    learnersOf(client, round).map((userId) => ({
      user_id: userId,
      skill_id: 'algebra',
      is_correct: round % 3 > 0,
      event_id: `${client}-${round}`,
    })),
  ),
);

/** Of transactions since Redis began. */
async function countTransactions(): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(/^cmdstat_exec:calls=(\d+)/m.exec(String(stats))?.[1] ?? 0);
}

test('three services with a hot learner: each answer is counted once, within few tries', {
  timeout: 120_000,
}, async (t) => {
  const before = await countTransactions();
  await Promise.all(
    callers.map(async (caller, client) => {
      for (const events of batches[client] ?? []) {
        const { status, text } = await caller.trackAll(events);
        assert.equal(status, 200, text);
      }
    }),
  );
  const transactions = (await countTransactions()) - before;
  const sent = batches.flat(2);
  t.diagnostic(`${transactions} transactions for ${batches.flat().length} batches, ${sent.length} answers`);
  // A step that is halved down to single learners, and not more.
  assert.ok(transactions < 2 * sent.length, `${transactions} transactions`);

  const counts = new Map<string, number>();
  for (const { user_id } of sent) counts.set(user_id, (counts.get(user_id) ?? 0) + 1);
  for (const [userId, count] of counts) {
    const { json } = await (callers[0] as (typeof callers)[number]).get(`/api/v1/mastery/${userId}`);
    assert.equal(json.data.skills[0].total_attempts, count, userId);
  }
  const rows = () =>
    selectRows<{ user_id: string; rows: number; ids: number; last: number }>(
      clickhouse,
      `SELECT user_id, toUInt32(count()) AS rows, toUInt32(uniqExact(event_id)) AS ids,
        toUInt32(max(attempts.learner_seq)) AS last FROM attempts GROUP BY user_id`,
    );
  await waitFor(
    'the rows in ClickHouse',
    async () => (await rows()).reduce((sum, one) => sum + one.rows, 0) >= sent.length,
  );
  for (const { user_id, rows: stored, ids, last } of await rows()) {
    const count = counts.get(user_id);
    assert.deepEqual([stored, ids, last], [count, count, count], user_id);
  }
});
