/** Refused rows, answers taken back and erasures of many learners in one partition at once: every row ends where it belongs. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { redrive } from '../../src/store/corrections/redrive.js';
import { dueErasuresKey, outboxKey, parkedKey, partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { erasureDone, takeBack } from '../support/builders/learner-data.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partition = 10;
const patienceMs = 300_000;

/** Names of learners who share the partition. */
function namesOf(kind: string, wanted: number): string[] {
  const names: string[] = [];
  for (let i = 0; names.length < wanted; i++)
    if (partitionOf('default', `${kind}-${i}`, 16) === partition) names.push(`${kind}-${i}`);
  return names;
}

test('refused rows, retractions and erasures in one partition', { timeout: 900_000 }, async (t) => {
  const service = await startService({ after });
  const redis = (await redisOf({ after }, service.redisUrl)) as Redis;
  const clickhouse = clickhouseOf({ after }, service);
  const caller = callerOf(service, service.key);
  const [outbox, parked] = [outboxKey(partition), parkedKey(outboxKey(partition))];
  const stored = () =>
    waitFor(
      'an empty outbox',
      async () => (await redis.xlen(outbox)) + (await redis.xlen(dueErasuresKey(partition))) === 0,
      patienceMs,
    );
  const post = async (user: string, n: number, name = 'e') => {
    const events = Array.from({ length: n }, (_, i) => ({
      user_id: user,
      skill_id: `skill ${i % 2}`,
      is_correct: i % 3 > 0,
      event_id: `${name}${i}`,
      time_spent_seconds: user.startsWith('refused') && (i === 2 || i === 4) ? 77 : 20 + i,
    }));
    const { status, text } = await caller.trackAll(events);
    assert.equal(status, 200, text);
  };
  const retract = async (user: string, id: string) => {
    const { status, text } = await takeBack(caller, user, id);
    assert.equal(status, 200, text);
  };
  await clickhouse.command({
    query:
      'ALTER TABLE attempts ADD CONSTRAINT no CHECK time_spent_seconds IS NULL OR time_spent_seconds != 77',
  });

  const refusing = namesOf('refused', 10);
  const erased = namesOf('erased', 14);
  await Promise.all([
    ...refusing.map(async (user) => {
      await post(user, 6);
      await retract(user, 'e2');
      await retract(user, 'e0');
      await post(user, 2, 'later');
    }),
    ...erased.map(async (user) => {
      await post(user, 8);
      const begun = await caller.call({ method: 'DELETE', path: `/api/v1/learners/${user}` });
      assert.equal(begun.status, 202);
      await post(user, 5, 'new');
      await retract(user, 'new3');
      await erasureDone(caller, begun.json.data.status_url);
    }),
  ]);
  await stored();
  t.diagnostic(`parked: ${await redis.xlen(parked)}`);
  assert.equal(await redis.xlen(parked), refusing.length, 'one of each was refused again');
  await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
  assert.equal((await redrive(redis, outbox)).moved, refusing.length);
  await stored();

  const rows = await selectRows<{ user_id: string; ids: string[] }>(
    clickhouse,
    `SELECT user_id, groupArray(event_id) AS ids FROM (SELECT * FROM attempts ORDER BY user_id, learner_seq) GROUP BY user_id`,
  );
  const expected = [
    ...refusing.map((user) => [user, ['e1', 'e3', 'e4', 'e5', 'later0', 'later1']]),
    ...erased.map((user) => [user, ['new0', 'new1', 'new2', 'new4']]),
  ];
  assert.deepEqual(
    new Map(rows.map(({ user_id, ids }) => [user_id, ids])),
    new Map(expected as [string, string[]][]),
  );
  const found = await auditsOf(redis, clickhouse)();
  assert.deepEqual([found.mismatches, found.notCompared], [[], []]);
  const env = { DATA_DIR: service.dataDir, REDIS_URL: service.redisUrl };
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
});
