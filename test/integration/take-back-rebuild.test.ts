/** After an answer was taken back, a rebuild gives the same bytes; ClickHouse away, nothing is taken back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { takeBack } from '../support/builders/learner-data.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const redisServer = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redisServer.url });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url };
exitAfterTests();

const answers = (user: string, n: number) =>
  Array.from({ length: n }, (_, i) => ({
    user_id: user,
    skill_id: `skill ${i % 4}`,
    is_correct: i % 3 !== 0,
    event_id: `event ${i}`,
    item_id: `item ${i % 7}`,
    time_spent_seconds: 20 + i,
    occurred_at: new Date(Date.UTC(2026, 0, 1 + (i >> 3), 12, i % 60)).toISOString(),
  }));

const withIds = /:e:/;
/** Event ids of later answers tell what they came to anew: a hash of 8 bytes, and when the answer came, stay. */
const compared = async () =>
  [...(await dumpRedis(redis))]
    .filter(([name]) => /:(l|h[01]|e):/.test(name))
    .map(([name, entries]) => [name, withIds.test(name) ? entries.map((one) => one.slice(0, 24)) : entries]);

test('a rebuild gives the same records, and repeats still count nothing', { timeout: 600_000 }, async () => {
  const taken: Readonly<Record<string, number>> = { middle: 20, last: 49, only: 0 };
  for (const user of Object.keys(taken)) {
    const events = answers(user, user === 'only' ? 1 : 50);
    for (const part of [events.slice(0, 30), events.slice(30, 49), events.slice(49)]) {
      if (part.length > 0) assert.equal((await caller.trackAll(part)).status, 200);
    }
  }
  for (const [user, i] of Object.entries(taken))
    assert.equal((await takeBack(caller, user, `event ${i}`)).status, 200);
  const lengths = async (): Promise<number> => {
    const keys = [...(await redis.keys('st:*:out')), ...(await redis.keys('st:*:journal'))];
    const found = await Promise.all(keys.map((key) => redis.xlen(key)));
    return found.reduce((sum, length) => sum + length, 0);
  };
  await waitFor('ClickHouse to have it all', async () => (await lengths()) === 0, 180_000);
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.equal(verified.code, 0, verified.out + verified.err);
  const before = await compared();
  await redisServer.kill();
  await redisServer.start();
  await waitFor('the emptied Redis', async () => (await fetch(`${service.baseUrl}/readyz`)).status === 503);
  const rebuilt = await runCommand('rebuild', env, '--json');
  assert.equal(rebuilt.code, 0, rebuilt.out + rebuilt.err);
  assert.deepEqual(await compared(), before);
  await waitFor('readyz', async () => (await fetch(`${service.baseUrl}/readyz`)).status === 200);
  for (const [user, i] of Object.entries(taken)) {
    const event = answers(user, 50)[i];
    await waitFor('the service', async () => {
      const { status, headers } = await caller.track(event);
      if (status === 200) assert.equal(headers['idempotent-replayed'], 'true', user);
      return status === 200;
    });
  }
});
