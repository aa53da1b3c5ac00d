/** Endpoints of webhooks in Redis: what a tenant asks for, the journal beside it, and a Redis that lost them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isSubscribed } from '../../src/contracts/webhooks/webhook-events.js';
import { subscribableTypes, type WebhookSetting } from '../../src/contracts/webhooks/webhooks.js';
import { ApiError } from '../../src/errors.js';
import { createLogger } from '../../src/logger.js';
import { createJournalDrain } from '../../src/services/outbox/drain-journal.js';
import { createJournal } from '../../src/store/outbox/journal.js';
import { createRebuildStore } from '../../src/store/rebuild/rebuild-store.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import { endpointsKey, subscriptionsKey, webhooksJournalKey } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import {
  createEndpointStore,
  type EndpointStore,
  maxEndpoints,
  removeEndpoints,
} from '../../src/store/webhooks/endpoints.js';
import { createMessageStore } from '../../src/store/webhooks/messages.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { removeTenantFacts } from '../../src/warehouse/maintenance/tenant-facts.js';
import { createRebuildSource } from '../../src/warehouse/reads/rebuild-source.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { countOf, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

async function connect(t: TestContext, url?: string): Promise<RedisClient> {
  const client = await redisOf(t, url ?? (await startTestRedis(t)));
  if (url === undefined) await openDeployment(client, async () => false);
  return client;
}

const secret = 'whsec_AAAA';
const setting = (...eventTypes: WebhookSetting['eventTypes']): WebhookSetting => ({
  ...{ url: 'https://a.example/', eventTypes, description: 'tab\tand \\' },
});
const isCode = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;

const wantedIn = async (redis: RedisClient, tenant: string): Promise<string[]> => {
  const text = (await redis.hget(subscriptionsKey, tenant)) ?? '';
  return subscribableTypes.filter((type) => isSubscribed(text, type));
};

const step = fc.record({
  store: fc.nat({ max: 1 }),
  tenant: fc.constantFrom('red', 'blue'),
  at: fc.nat(),
  act: fc.constantFrom('create', 'create', 'types', 'disable', 'enable', 'strip', 'remove'),
  types: fc.oneof(
    fc.constant<WebhookSetting['eventTypes']>(['*']),
    fc.uniqueArray(fc.constantFrom(...subscribableTypes), { minLength: 1, maxLength: 3 }),
  ),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

async function take(store: EndpointStore, { tenant, at, act, types }: Step): Promise<unknown> {
  if (act === 'create')
    return store.create(tenant, setting(...types), secret).catch((error: unknown) => {
      if (!isCode('LIMIT_EXCEEDED')(error)) throw error;
    });
  const all = await store.list(tenant);
  const id = all.map((one) => one.id).sort()[at % Math.max(1, all.length)] ?? 'wh_none';
  if (act === 'remove') return store.remove(tenant, id);
  if (act === 'disable') return store.disable(tenant, id, 'gone');
  return store.change(tenant, id, (one) => {
    if (act === 'types') return { ...one, eventTypes: types };
    if (act === 'enable') return { ...one, disabledReason: null };
    return { ...one, secrets: [] };
  });
}

test('what a tenant asks for is what its enabled endpoints ask for, whoever changes them at once', {
  timeout: 60_000,
}, async (t) => {
  const url = await startTestRedis(t);
  const redis = await redisOf(t, url);
  await openDeployment(redis, async () => false);
  const stores = [createEndpointStore(redis), createEndpointStore(await connect(t, url))];
  const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { maxLength: 4 });
  await assertAsync(
    fc.asyncProperty(rounds, async (all) => {
      for (const tenant of ['red', 'blue']) await removeEndpoints(redis, tenant);
      for (const steps of all) {
        await Promise.all(steps.map((one) => take(stores[one.store] as EndpointStore, one)));
        for (const tenant of ['red', 'blue']) {
          const endpoints = await (stores[0] as EndpointStore).list(tenant);
          assert.ok(endpoints.length <= maxEndpoints);
          const asked = new Set(
            endpoints
              .filter(({ enabled, secrets }) => enabled && secrets.length > 0)
              .flatMap((one) => one.eventTypes),
          );
          const expected = subscribableTypes.filter((type) => asked.has('*') || asked.has(type));
          assert.deepEqual(await wantedIn(redis, tenant), expected);
        }
      }
    }),
    { numRuns: 40 },
  );
});

test('the journal has each change in its order, and a rebuild the last of each', {
  timeout: 60_000,
}, async (t) => {
  const [redis, { clickhouseUrl }] = await Promise.all([connect(t), freshDatabase()]);
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const store = createEndpointStore(redis);
  const kept = await store.create('red', setting('*'), secret);
  const disabled = await store.create('red', setting('goal.reached', 'goal.at_risk'), secret);
  const removed = await store.create('red', setting('*'), secret);
  await store.create('blue', { ...setting('erasure.completed'), description: null }, secret);
  await store.change('red', kept.id, (one) => ({ ...one, url: 'https://b.example/' }));
  await store.disable('red', disabled.id, 'failing');
  await store.disable('red', disabled.id, 'gone');
  await store.remove('red', removed.id);
  assert.equal(await store.remove('red', removed.id), null);
  const entries = await redis.xrange(webhooksJournalKey, '-', '+');
  assert.ok(!JSON.stringify(entries).includes(secret));
  const times = entries.map(([, fields]) => (fields[3] as string).split('\t'));
  for (const id of [kept.id, disabled.id, removed.id]) {
    const own = times.filter((row) => row[2] === id).map(([at]) => Number(at));
    assert.deepEqual(
      own,
      [...new Set(own)].sort((a, b) => a - b),
      'later than the change before',
    );
  }

  const drain = createJournalDrain({
    journal: createJournal(redis, 16),
    warehouse: createJournalWarehouse(client),
    logger: createLogger('silent', 'test'),
  });
  assert.equal(await drain(), entries.length);
  const before = [...(await store.list('red')), ...(await store.list('blue'))];
  await redis.unlink(endpointsKey('red'), endpointsKey('blue'), subscriptionsKey);
  const rebuild = createRebuildStore(redis);
  assert.ok((await rebuild.findMissingShared()).includes('webhooks'));
  const source = createRebuildSource(client, url, 1000);
  for (let times = 0; times < 2; times++) await rebuild.restoreEndpoints(await source.fetchWebhooks());
  assert.ok(!(await rebuild.findMissingShared()).includes('webhooks'));
  const after = [...(await store.list('red')), ...(await store.list('blue'))];
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  assert.deepEqual(
    after.sort(byId),
    before
      .map((one) => ({
        ...{ ...one, enabled: false, secrets: [] },
        disabledReason: one.disabledReason ?? ('restored' as const),
      }))
      .sort(byId),
  );
  assert.deepEqual([await wantedIn(redis, 'red'), await wantedIn(redis, 'blue')], [[], []]);

  const message = { id: 'msg_1', type: 'goal.reached', at: Date.now(), body: '{}' } as const;
  await createMessageStore(redis).add(kept, [message]);
  await removeEndpoints(redis, 'red');
  assert.deepEqual(await redis.keys('st:{webhooks}:m:*'), []);
  await removeTenantFacts(client, 'red');
  assert.deepEqual([await store.list('red'), (await store.list('blue')).length], [[], 1]);
  assert.equal(await countOf(client, "webhooks WHERE tenant = 'red'"), 0);
  assert.equal(await countOf(client, 'webhooks'), 1);
});

test('a Redis that came back empty, a full journal and a newer version are told of, and change nothing', async (t) => {
  const redis = await connect(t);
  const store = createEndpointStore(redis, 1);
  const { id } = await store.create('red', setting('*'), secret);
  await assert.rejects(store.create('red', setting('*'), secret), isCode('UNAVAILABLE'));
  await assert.rejects(store.remove('red', id), isCode('UNAVAILABLE'));
  assert.equal((await store.list('red')).length, 1);
  const value = (await redis.hget(endpointsKey('red'), id)) ?? '';
  await redis.hset(endpointsKey('red'), id, value.replace('"v":1', '"v":2'));
  await assert.rejects(store.find('red', id), /not known to this version/);
  await assert.rejects(store.remove('red', id), /not known to this version/);
  await redis.del(...(await redis.keys('st:*')));
  await assert.rejects(store.create('red', setting('*'), secret), isCode('UNAVAILABLE'));
  assert.deepEqual(await redis.keys('st:*'), []);
});
