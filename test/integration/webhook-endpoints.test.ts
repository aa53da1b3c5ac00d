/** Webhook endpoints in Redis: subscribed types, the journal for a rebuild, and a Redis that lost them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isSubscribed } from '../../src/contracts/webhooks/webhook-events.js';
import { subscribableTypes, type WebhookSetting } from '../../src/contracts/webhooks/webhooks.js';
import { ApiError } from '../../src/errors.js';
import { createLogger } from '../../src/logger.js';
import { createJournalDrain } from '../../src/services/outbox/drain-journal.js';
import { createJournal } from '../../src/store/outbox/journal.js';
import { createRebuildStore } from '../../src/store/rebuild/rebuild-store.js';
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
import { roundsOf } from '../support/runner/long-form.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const url = await startTestRedis({ after });
const redis = await redisOf({ after }, url);
await openDeployment(redis, async () => false);
const store = createEndpointStore(redis);

const secret = 'whsec_AAAA';
const setting = (...eventTypes: WebhookSetting['eventTypes']): WebhookSetting => ({
  ...{ url: 'https://a.example/', eventTypes, description: 'tab\tand \\' },
});
const unavailable = { code: 'UNAVAILABLE' };

const subscribedTypes = async (tenant: string): Promise<string[]> => {
  const text = (await redis.hget(subscriptionsKey, tenant)) ?? '';
  return subscribableTypes.filter((type) => isSubscribed(text, type));
};

const step = fc.record({
  store: fc.nat({ max: 1 }),
  tenant: fc.constantFrom('red', 'blue'),
  at: fc.nat(),
  action: fc.constantFrom('create', 'create', 'types', 'disable', 'enable', 'strip', 'remove'),
  types: fc.oneof(
    fc.constant<WebhookSetting['eventTypes']>(['*']),
    fc.uniqueArray(fc.constantFrom(...subscribableTypes), { minLength: 1, maxLength: 3 }),
  ),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

async function runStep(by: EndpointStore, { tenant, at, action, types }: Step): Promise<unknown> {
  if (action === 'create')
    return by.create(tenant, setting(...types), secret).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.code === 'LIMIT_EXCEEDED')) throw error;
    });
  const all = await by.list(tenant);
  const id = all.map((one) => one.id).sort()[at % Math.max(1, all.length)] ?? 'wh_none';
  if (action === 'remove') return by.remove(tenant, id);
  if (action === 'disable') return by.disable(tenant, id, 'gone');
  return by.change(tenant, id, (one) => {
    if (action === 'types') return { ...one, eventTypes: types };
    if (action === 'enable') return { ...one, disabledReason: null };
    return { ...one, secrets: [] };
  });
}

test('EndpointStore subscribes to the types of all enabled endpoints under concurrent changes', async () => {
  const stores = [store, createEndpointStore(await redisOf({ after }, url))];
  const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { maxLength: 4 });
  const property = fc.asyncProperty(rounds, async (all) => {
    for (const tenant of ['red', 'blue']) await removeEndpoints(redis, tenant);
    for (const steps of all) {
      await Promise.all(steps.map((one) => runStep(stores[one.store] as EndpointStore, one)));
      for (const tenant of ['red', 'blue']) {
        const endpoints = await store.list(tenant);
        assert.ok(endpoints.length <= maxEndpoints);
        const active = endpoints.filter(({ enabled, secrets }) => enabled && secrets.length > 0);
        const types = new Set(active.flatMap((one) => one.eventTypes));
        const expected = subscribableTypes.filter((type) => types.has('*') || types.has(type));
        assert.deepEqual(await subscribedTypes(tenant), expected);
      }
    }
  });
  await assertAsync(property, { numRuns: roundsOf(15, 100) });
  for (const tenant of ['red', 'blue']) await removeEndpoints(redis, tenant);
  await redis.del(webhooksJournalKey);
});

test('A rebuild restores the last state of each endpoint from the journal, disabled and without secrets', async (t) => {
  const { client, url: clickhouseUrl } = await testDatabase(t, (await freshDatabase()).clickhouseUrl);
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
  assert.ok(!JSON.stringify(entries).includes(secret), 'the journal contains a secret');
  const rows = entries.map(([, fields]) => (fields[3] as string).split('\t'));
  for (const id of [kept.id, disabled.id, removed.id]) {
    const times = rows.filter((row) => row[2] === id).map(([at]) => Number(at));
    const increasing = [...new Set(times)].sort((a, b) => a - b);
    assert.deepEqual(times, increasing, 'a change is not later than the previous one');
  }

  const drain = createJournalDrain({
    journal: createJournal(redis, 16),
    warehouse: createJournalWarehouse(client),
    logger: createLogger('silent', 'test'),
  });
  assert.equal(await drain(), entries.length);
  const listAll = async () =>
    [...(await store.list('red')), ...(await store.list('blue'))].sort((a, b) => (a.id < b.id ? -1 : 1));
  const before = await listAll();
  await redis.unlink(endpointsKey('red'), endpointsKey('blue'), subscriptionsKey);
  const rebuild = createRebuildStore(redis);
  assert.ok((await rebuild.findMissingShared()).includes('webhooks'));
  const source = createRebuildSource(client, clickhouseUrl, 1000);
  for (const _ of [1, 2]) await rebuild.restoreEndpoints(await source.fetchWebhooks());
  assert.ok(!(await rebuild.findMissingShared()).includes('webhooks'));
  const restored = before.map((one) => ({
    ...{ ...one, enabled: false, secrets: [] },
    disabledReason: one.disabledReason ?? ('restored' as const),
  }));
  assert.deepEqual(await listAll(), restored);
  assert.deepEqual([await subscribedTypes('red'), await subscribedTypes('blue')], [[], []]);

  const message = { id: 'msg_1', type: 'goal.reached', at: Date.now(), body: '{}' } as const;
  await createMessageStore(redis).add(kept, [message]);
  await removeEndpoints(redis, 'red');
  assert.deepEqual(await redis.keys('st:{webhooks}:m:*'), []);
  await removeTenantFacts(client, 'red');
  assert.deepEqual([await store.list('red'), (await store.list('blue')).length], [[], 1]);
  assert.equal(await countOf(client, "webhooks WHERE tenant = 'red'"), 0);
  assert.equal(await countOf(client, 'webhooks'), 1);
});

test('EndpointStore rejects changes with a full journal, an entry of a newer version or an empty Redis', async () => {
  const { id } = await store.create('green', setting('*'), secret);
  const full = createEndpointStore(redis, 1);
  await assert.rejects(full.create('green', setting('*'), secret), unavailable);
  await assert.rejects(full.remove('green', id), unavailable);
  assert.equal((await store.list('green')).length, 1);
  const value = (await redis.hget(endpointsKey('green'), id)) ?? '';
  await redis.hset(endpointsKey('green'), id, value.replace('"v":1', '"v":2'));
  await assert.rejects(store.find('green', id), /unsupported format/);
  await assert.rejects(store.remove('green', id), /unsupported format/);
  await redis.del(...(await redis.keys('st:*')));
  await assert.rejects(store.create('green', setting('*'), secret), unavailable);
  assert.deepEqual(await redis.keys('st:*'), []);
});
