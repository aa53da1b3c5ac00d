/** Servers with learners and tenants as large as the contract allows, and a service process on them. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { dayMs } from '../../../src/domain/base/common.js';
import { indices, splitIntoParts } from '../../../src/lists.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { learnerKey, partitionOf } from '../../../src/store/redis/keys.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { callerOf } from '../http/http.js';
import type { Servers } from '../servers/servers.js';
import { redisOf } from '../servers/service.js';
import { type Launched, launchService } from '../servers/service-process.js';
import { waitUntilStored } from '../wait.js';

/** Their quota is never reached: quotas are tested elsewhere. */
export const keys = { attacker: 'key-attacker', neighbor: 'key-neighbor' } as const;

const tenant = 'attacker';
const maxSkills = { learner: 2000, tenant: 50_000 } as const;

/** `full` has the most skills of a learner, `busy` the most answers, `pupils` are a class of learners like `full`. */
export const learners = {
  full: 'full',
  busy: 'busy',
  busyAnswers: 20_000,
  pupils: indices(500).map((i) => `pupil-${i}`),
} as const;

export const skillName = (i: number): string => `skill-${`${i}`.padStart(6, '0')}`;

export function launchTarget(t: TestContext, { env }: Servers): Promise<Launched> {
  return launchService(t, {
    ...env,
    API_KEYS: `${keys.attacker}:${tenant}:1000000000,${keys.neighbor}:neighbor:1000000000`,
    LOG_LEVEL: 'error',
    AUDIT_INTERVAL_HOURS: '0',
    FIT_INTERVAL_HOURS: '0',
  });
}

/** Resolves when ClickHouse has all answers. */
export async function seedLearners(t: TestContext, servers: Servers): Promise<void> {
  const service = await launchTarget(t, servers);
  const caller = callerOf(service, keys.attacker);
  const post = async (count: number, createEvent: (i: number) => object): Promise<void> => {
    for (const batch of splitIntoParts(indices(count), 1000)) {
      const events = batch.map((i) => ({ skill_id: skillName(i), is_correct: i % 3 > 0, ...createEvent(i) }));
      assert.equal((await caller.trackAll(events)).status, 200);
    }
  };
  const yearAgo = Date.now() - 364 * dayMs;
  await post(maxSkills.tenant, (i) => ({ user_id: `learner-${Math.floor(i / maxSkills.learner)}` }));
  await post(maxSkills.learner, () => ({ user_id: learners.full }));
  await post(learners.busyAnswers, (i) => ({
    ...{ user_id: learners.busy, skill_id: skillName(i % 50), event_id: `e-${i}` },
    occurred_at: new Date(yearAgo + (i / learners.busyAnswers) * 364 * dayMs).toISOString(),
  }));
  await copyLearner(await redisOf(t, servers.env.REDIS_URL ?? ''));
  await waitUntilStored(caller);
  await service.stop();
}

const recordKey = (userId: string): string =>
  learnerKey(partitionOf(tenant, userId, defaultPartitions), tenant, userId);

async function copyLearner(redis: RedisClient): Promise<void> {
  const dump = await redis.dumpBuffer(recordKey(learners.full));
  assert.ok(dump, 'the learner is missing in Redis');
  for (const pupil of learners.pupils) await redis.restore(recordKey(pupil), 0, dump);
}
