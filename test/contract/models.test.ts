/** What answers meet when a tenant's model cannot be used. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { activeModelsKey, modelVersionKey } from '../../src/store/redis/keys.js';
import { callerOf, event } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const redis = await redisOf({ after }, service.redisUrl);
const keys = await keysOf({ after }, service);

/** Bytes that some newer version of the service may have written. */
async function breakModel(name: string): Promise<void> {
  const tenant = keys.nameOf(name);
  await redis.hset(modelVersionKey(tenant, 1), { model: '{"format":99}' });
  await redis.hset(activeModelsKey, tenant, 1);
}

test('a model that cannot be read refuses its tenant, and no other in the same batch', async () => {
  await breakModel('broken');
  const [broken, healthy] = await Promise.all(
    ['broken', 'healthy'].map(async (tenant) => callerOf(service, await keys.add({ tenant }))),
  );
  // The worker meets the model for the first time with both tenants' answers in one lane.
  const posts = Array.from({ length: 20 }, (_, i) =>
    [broken, healthy].map((caller) => caller?.track(event({ user_id: `learner-${i}` }))),
  );
  const answers = await Promise.all(posts.flat());
  const statuses = (place: number): number[] =>
    answers.filter((_, i) => i % 2 === place).map((answer) => answer?.status ?? 0);
  assert.deepEqual(new Set(statuses(0)), new Set([503]));
  assert.deepEqual(new Set(statuses(1)), new Set([200]));
});

test('a model that was broken while it served leaves the one before in force', async () => {
  const caller = callerOf(service, await keys.add({ tenant: 'served' }));
  assert.equal((await caller.track(event({ user_id: 'a' }))).status, 200);
  await breakModel('served');
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const { status, json } = await caller.track(event({ user_id: 'a' }));
  assert.equal(status, 200);
  assert.equal(json.data.total_attempts, 2);
});
