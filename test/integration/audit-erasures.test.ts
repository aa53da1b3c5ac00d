/** Audits while learners are erased and answers come in: nothing is missed, and nothing found that is not there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { outboxKey, partitionOf } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { attemptRow, encoded } from '../support/builders/attempt-rows.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const learners = Array.from({ length: 6 }, (_, i) => `learner-${i}`);

test('erasures during audits', { timeout: 600_000 }, async (t) => {
  const service = await startService(t);
  const caller = callerOf(service, service.key);
  const redis = await redisOf(t, service.redisUrl);
  const audit = auditsOf(redis, clickhouseOf(t, service));
  const open = createErasureStore(redis, defaultPartitions).open;

  /** Rows of a version that did not count what it accepted: they have no version of their learner. */
  async function storeOldRows(): Promise<void> {
    for (const [i, userId] of learners.entries()) {
      // Of today, which audits look at.
      const times = { receivedAt: Date.now(), occurredAt: Date.now() };
      const numbers = { learnerSeq: 1_000_000, learnerVersion: 0 };
      const row = attemptRow(i, { userId, skillId: 'algebra', ...times, ...numbers });
      await redis.xadd(outboxKey(partitionOf('default', userId, defaultPartitions)), '*', 'r', encoded(row));
    }
  }

  const erase = (userId: string) => caller.call({ method: 'DELETE', path: `/api/v1/learners/${userId}` });
  const isOver = async (): Promise<boolean> => (await open()).length === 0;

  await storeOldRows();
  let going = true;
  const answering = (async () => {
    for (let i = 0; going; i++) {
      await sleep(30);
      const events = learners.map((user_id) =>
        event({ user_id, skill_id: i % 2 === 0 ? 'algebra' : 'reading', is_correct: i % 3 > 0 }),
      );
      assert.equal((await caller.trackAll(events)).status, 200);
    }
  })();
  const audits = (async () => {
    for (let n = 0; going || n < 3; n++) assert.deepEqual(namesOf((await audit()).mismatches), []);
  })();
  const erasing = (async () => {
    for (let round = 0; round < 2; round++) {
      for (const userId of learners)
        await waitFor('answers', async () => (await erase(userId)).status === 202);
      await waitFor('the erasures', isOver, 240_000);
    }
  })().finally(() => {
    going = false;
  });
  await Promise.all([answering, audits, erasing]);
  assert.deepEqual(namesOf((await audit()).mismatches), []);

  const { code, out } = await runCommand('audit', { DATA_DIR: service.dataDir });
  assert.equal(code, 0, out);
});
