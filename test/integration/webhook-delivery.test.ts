/** Webhook events in Redis: their dispatch to endpoints, and the delivery, retry and expiry of messages. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createDeliveryPool } from '../../src/compute/thread-pools.js';
import {
  createWebhookEvent,
  toStreamFields,
  type WebhookType,
} from '../../src/contracts/webhooks/webhook-events.js';
import type { WebhookSetting } from '../../src/contracts/webhooks/webhooks.js';
import { indices, splitIntoParts } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import {
  computeFailureState,
  computeRetryDelay,
  createDeliverer,
  maxWaveMessages,
} from '../../src/services/webhooks/deliver-messages.js';
import { createDispatcher } from '../../src/services/webhooks/dispatch-messages.js';
import {
  endpointsKey,
  messagesPrefix,
  nextDeliveriesKey,
  partitionOf,
  webhookEventsKey,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { createEndpointStore } from '../../src/store/webhooks/endpoints.js';
import { createEventStreams } from '../../src/store/webhooks/event-streams.js';
import { createMessageStore } from '../../src/store/webhooks/messages.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { startReceiver } from '../support/servers/receiver.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 4;
const logger = createLogger('silent', 'test');
const secret = `whsec_${Buffer.from('a secret of 24 bytes....').toString('base64')}`;
const pool = createDeliveryPool(64, logger);
after(() => pool.close());

const redis = await redisOf({ after }, await startTestRedis({ after }));

await openDeployment(redis, async () => false);
let tenants = 0;

const webhooks = createEndpointStore(redis);
const { signal } = new AbortController();

/** A new tenant with an endpoint, and the services that dispatch and deliver its events. */
async function startStage(url = 'https://a.example/', limits: { waiting?: number; listed?: number } = {}) {
  tenants += 1;
  const tenant = `t${tenants}`;
  const eventTypes: WebhookSetting['eventTypes'] = ['mastery.reached', 'plateau.detected'];
  const endpoint = await webhooks.create(tenant, { url, eventTypes, description: null }, secret);
  const messages = createMessageStore(redis, limits);
  const streams = createEventStreams(redis, partitions);
  const counts = { delivered: 0, failed: 0, given_up: 0 };
  const dispatchOnce = createDispatcher({ streams, endpoints: webhooks, messages, logger });
  const parts = { endpoints: webhooks, messages, counts, logger };
  const createDelivery = (send = pool.send) => {
    const deliver = createDeliverer({ ...parts, send, allowPrivate: true });
    return () => deliver(endpoint, signal, () => undefined);
  };
  const partition = (userId: string): number => partitionOf(tenant, userId, partitions);
  const createEvent = (userId: string, type: WebhookType = 'mastery.reached', place = 0) =>
    createWebhookEvent(type, tenant, userId, Date.now(), { user_id: userId, place });
  const write = async (userId: string, event = createEvent(userId), at = partition(userId)) => {
    await redis.xadd(webhookEventsKey(at), '*', ...toStreamFields(event));
    return event;
  };
  const key = (name: string): string => `${messagesPrefix(endpoint.id)}:${name}`;
  return {
    ...{ endpoint, messages, createEvent, partition, write, key },
    writeAll: async (learners: number): Promise<void> => {
      for (const i of indices(learners)) await write(`learner-${i}`);
    },
    dispatch: async () => {
      while (await dispatchOnce()) assert.ok(!signal.aborted);
    },
    deliver: createDelivery(),
    /** Like another process, without the failure state of this one. */
    deliverAfterRestart: () => createDelivery()(),
    deliverBy: (send: typeof pool.send) => createDelivery(send)(),
    makeDue: async (): Promise<void> => {
      for (const id of await redis.zrange(key('due'), '0', '-1')) await redis.zadd(key('due'), '1', id);
    },
    list: async () => (await messages.list(endpoint, null, 1000)).messages,
    keys: () => redis.keys(key('*')),
    nextDelivery: () => redis.zscore(nextDeliveriesKey, `${tenant}:${endpoint.id}`),
    disabledReason: async () => (await webhooks.find(tenant, endpoint.id))?.disabledReason,
  };
}

const idsOf = (messages: readonly { readonly id: string }[]): string[] => messages.map(({ id }) => id);

test('computeRetryDelay follows the schedule of Standard Webhooks', () => {
  const delays = indices(10).map((i) => computeRetryDelay(i + 1, 0));
  const seconds = delays.map((ms) => (ms === null ? null : ms / 1000));
  assert.deepEqual(seconds, [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400, null]);
  assert.equal(computeRetryDelay(1, 1), 5500);
});

test('computeFailureState doubles the pause up to five minutes, once for concurrent failures', () => {
  let [state, now] = [computeFailureState(undefined, 1), 1];
  for (let i = 0; i < 6; i++) state = computeFailureState(state, now);
  assert.ok(state.until <= now);
  const pauses = indices(10).map(() => {
    for (let i = 0; i < 8; i++) state = computeFailureState(state, now);
    const pause = state.until - now;
    now = state.until;
    return pause;
  });
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]);
});

test('The dispatcher creates one message per subscribed event, delivered in the order of the learner', async (t) => {
  const receiver = await startReceiver(t);
  const stage = await startStage(receiver.url);
  const events = [];
  for (const place of indices(30))
    events.push(await stage.write('ada', stage.createEvent('ada', 'mastery.reached', place)));
  await stage.write('ada', stage.createEvent('ada', 'goal.reached'));
  await Promise.all([stage.dispatch(), stage.dispatch()]);
  await stage.dispatch();
  await stage.deliver();
  const payloads = await receiver.payloads(30, secret);
  for (const [i, { data }] of payloads.entries()) assert.equal(data.place, i);
  assert.deepEqual(idsOf(receiver.received), idsOf(events));
  const listed = await stage.list();
  assert.deepEqual(idsOf(listed).reverse(), idsOf(events));
  for (const { status, tries, lastStatus, nextTryAt } of listed)
    assert.deepEqual([status, tries, lastStatus, nextTryAt], ['delivered', 1, 204, null]);
  assert.equal(await stage.nextDelivery(), null);
});

test('The dispatcher serves other tenants while the endpoints of one tenant cannot be read', async () => {
  const [broken, stage] = [await startStage(), await startStage()];
  const key = endpointsKey(broken.endpoint.tenant);
  const value = (await redis.hget(key, broken.endpoint.id)) ?? '';
  await redis.hset(key, broken.endpoint.id, value.replace('"v":1', '"v":2'));
  // More events than a page, in the stream of the other tenant's learner.
  for (let i = 0; i < 300; i++) await broken.write('ada', broken.createEvent('ada'), stage.partition('ada'));
  const { id } = await stage.write('ada');
  for (const _ of [1, 2]) await assert.rejects(stage.dispatch(), /unsupported format/);
  assert.deepEqual(idsOf(await stage.list()), [id]);
  await redis.hset(key, broken.endpoint.id, value);
  await stage.dispatch();
  assert.equal((await broken.list()).length, 300);
});

test('The dispatcher sends events of an unknown type only to endpoints that subscribe to all', async (t) => {
  const receiver = await startReceiver(t);
  const stage = await startStage(receiver.url);
  const newer = { ...stage.createEvent('ada'), type: 'goal.changed' as WebhookType };
  await stage.write('ada', newer);
  await stage.dispatch();
  assert.deepEqual(await stage.list(), []);
  const { tenant, id } = stage.endpoint;
  await webhooks.change(tenant, id, (one) => ({ ...one, eventTypes: ['*'] }));
  await stage.write('ada', newer);
  await stage.dispatch();
  await stage.deliver();
  const [{ type, status } = {}, ...others] = await stage.list();
  assert.deepEqual([type, status, others], ['goal.changed', 'delivered', []]);
});

test('The deliverer sends waves with one message per learner and stores the reply of each message', async () => {
  const stage = await startStage();
  const learners = indices(maxWaveMessages + 3).map((i) => `learner-${i}`);
  for (const userId of [...learners, 'learner-0', 'learner-0']) await stage.write(userId);
  await stage.dispatch();
  const waves: string[][] = [];
  await stage.deliverBy(async ({ messages }) => {
    waves.push(messages.map(({ body }) => JSON.parse(body).data.user_id));
    return messages.map((_, i) => ({ status: i === 1 ? 503 : 200, reason: null }));
  });
  const sizes = waves.map((wave) => new Set(wave).size);
  assert.deepEqual([sizes, waves.flat().length], [[maxWaveMessages, 4, 1], maxWaveMessages + 5]);
  const states = (await stage.list()).map((one) => `${one.status} ${one.lastStatus} ${one.tries}`);
  const pending = states.filter((state) => state === 'pending 503 1');
  const delivered = states.filter((state) => state === 'delivered 200 1');
  assert.deepEqual([pending.length, delivered.length], [2, states.length - 2]);
});

test('The deliverer sends one message after a failure before it sends waves again', async () => {
  const stage = await startStage();
  await stage.writeAll(82);
  await stage.dispatch();
  const waves: number[] = [];
  await stage.deliverBy(async ({ messages }) => {
    waves.push(messages.length);
    const isLastOfPage = waves.length === 4;
    return messages.map((_, i) => ({ status: isLastOfPage && i === 15 ? 503 : 204, reason: null }));
  });
  assert.deepEqual(waves, [...Array(4).fill(maxWaveMessages), 1, maxWaveMessages, 1]);
});

test('The deliverer retries a failed message when it is due, and disables the endpoint after the last retry', async (t) => {
  const receiver = await startReceiver(t, { answer: 500 });
  const stage = await startStage(receiver.url);
  const { endpoint, messages } = stage;
  const { id } = await stage.write('ada');
  await stage.dispatch();
  await stage.deliver();
  await stage.deliverAfterRestart();
  assert.equal(receiver.received.length, 1, 'the message was retried before it was due');
  const [first] = await stage.list();
  const nextTryAt = first?.nextTryAt ?? 0;
  assert.ok(nextTryAt > Date.now() && nextTryAt < Date.now() + 5500);
  assert.deepEqual([first?.status, first?.tries, first?.lastStatus], ['pending', 1, 500]);
  for (let tries = 1; tries < 10; tries++) {
    await stage.makeDue();
    await stage.deliverAfterRestart();
  }
  assert.deepEqual(idsOf(receiver.received), Array(10).fill(id));
  assert.equal(await stage.disabledReason(), 'failing');
  const [failed] = await stage.list();
  assert.deepEqual([failed?.status, failed?.nextTryAt], ['failed', null]);
  // Sends the message again after the endpoint was enabled.
  await webhooks.change(endpoint.tenant, endpoint.id, (one) => ({ ...one, disabledReason: null }));
  receiver.answerWith(200);
  assert.equal(await messages.retry(endpoint, 'msg_unknown'), false);
  assert.equal(await messages.retry(endpoint, id), true);
  await stage.deliver();
  const [delivered] = await stage.list();
  assert.deepEqual([receiver.received.length, delivered?.status], [11, 'delivered']);
});

test('The deliverer keeps an endpoint enabled that confirmed messages while one failed for good', async () => {
  const stage = await startStage();
  const { id: failingId } = await stage.write('ada');
  for (let tries = 0; tries < 10; tries++) {
    await stage.write('ben');
    await stage.dispatch();
    await stage.makeDue();
    await stage.deliverBy(async ({ messages }) =>
      messages.map(({ id }) => ({ status: id === failingId ? 500 : 200, reason: null })),
    );
  }
  const failed = (await stage.list()).filter(({ status }) => status !== 'delivered');
  assert.deepEqual(
    failed.map(({ id, status, tries }) => [id, status, tries]),
    [[failingId, 'failed', 10]],
  );
  assert.equal(await stage.disabledReason(), null);
});

test('The deliverer disables an endpoint that responds 410 and keeps the other messages', async (t) => {
  const receiver = await startReceiver(t, { answer: 410 });
  const stage = await startStage(receiver.url);
  await stage.writeAll(60);
  await stage.dispatch();
  await stage.deliver();
  assert.equal(await stage.disabledReason(), 'gone');
  const failed = (await stage.list()).filter(({ status }) => status === 'failed').length;
  assert.ok(failed >= 1 && failed <= maxWaveMessages, `${failed} of 60 messages failed finally`);
  await stage.write('ben');
  await stage.dispatch();
  assert.equal((await stage.list()).length, 60, 'a disabled endpoint got a new message');
});

test('The deliverer stops after one wave when the receiver is unreachable', async (t) => {
  const receiver = await startReceiver(t);
  await receiver.stop();
  const stage = await startStage(receiver.url);
  await stage.writeAll(100);
  await stage.dispatch();
  await stage.deliver();
  const tried = (await stage.list()).filter(({ tries }) => tries > 0);
  assert.ok(tried.length >= 8 && tried.length <= maxWaveMessages, `${tried.length} of 100 were tried`);
  for (const { lastStatus, lastError } of tried)
    assert.deepEqual([lastStatus, lastError], [null, 'connection refused (ECONNREFUSED)']);
  const restarted = await startReceiver(t, { port: receiver.port });
  await stage.makeDue();
  // The pause after a failure is one second.
  await waitFor('all messages', async () => {
    await stage.deliver();
    return new Set(idsOf(restarted.received)).size === 100;
  });
});

test('The dispatcher disables an endpoint with too many undelivered messages and keeps them', async () => {
  const stage = await startStage('https://a.example/', { waiting: 250 });
  await stage.writeAll(300);
  await stage.dispatch();
  assert.equal(await stage.disabledReason(), 'undelivered');
  assert.equal((await stage.list()).length, 250);
});

test('MessageStore removes messages by id, also while they are being sent', async (t) => {
  const receiver = await startReceiver(t);
  const stage = await startStage(receiver.url);
  const { endpoint, messages } = stage;
  const { id } = await stage.write('ada');
  await stage.write('ben');
  await stage.dispatch();
  const ada = (await messages.listDue(endpoint, Date.now(), 10)).find((one) => one.id === id);
  assert.ok(ada);
  await messages.remove(endpoint, [{ id }]);
  assert.equal(await messages.settle(endpoint, [{ message: ada, retryAfterMs: 5000 }]), 0);
  await stage.deliver();
  assert.equal(receiver.received.length, 1);
  assert.notEqual(receiver.received[0]?.id, id);
  assert.equal((await stage.keys()).length, 4);
  await webhooks.remove(endpoint.tenant, endpoint.id);
  assert.deepEqual(await stage.keys(), []);
});

test('MessageStore stores nothing for a deleted endpoint', async () => {
  const stage = await startStage();
  const { endpoint, messages } = stage;
  const late = { ...stage.createEvent('ada'), at: Date.now() };
  await messages.add(endpoint, [late]);
  await webhooks.remove(endpoint.tenant, endpoint.id);
  await messages.add(endpoint, [late]);
  const tried = { ...late, tries: 1, lastStatus: 500, lastError: null, status: 'pending' } as const;
  assert.equal(await messages.settle(endpoint, [{ message: tried, retryAfterMs: 5000 }]), 0);
  assert.deepEqual(await stage.keys(), []);
  assert.equal(await stage.nextDelivery(), null);
});

test('MessageStore skips a due message without a body', async () => {
  const { endpoint, messages, createEvent, key } = await startStage();
  const [ada, ben] = ['ada', 'ben'].map((userId) => ({ ...createEvent(userId), at: Date.now() }));
  assert.ok(ada && ben);
  await messages.add(endpoint, [ada, ben]);
  await redis.hdel(key('b'), ada.id);
  assert.deepEqual(idsOf(await messages.listDue(endpoint, Date.now() + 1000, 10)), [ben.id]);
});

test('MessageStore removes a message after seven days, even if it is due again', async (t) => {
  const receiver = await startReceiver(t);
  const { endpoint, messages, write, dispatch, deliver, key } = await startStage(receiver.url);
  const { id } = await write('ada');
  await dispatch();
  await deliver();
  assert.equal(await redis.exists(key('due')), 0);
  await messages.retry(endpoint, id);
  const names = ['s', 'b', 'log', 'due'];
  for (const name of names) assert.ok((await redis.pttl(key(name))) > 0, name);
  await redis.zadd(key('log'), 'XX', 1000 * (Date.now() - 7 * 86_400_000) - 1, id);
  assert.deepEqual(await messages.list(endpoint, null, 10), { messages: [], next: null });
  await messages.scheduleNextRun(endpoint, 0);
  for (const name of names) assert.equal(await redis.exists(key(name)), 0, name);
});

test('MessageStore keeps undelivered messages when it removes the oldest delivered ones', async () => {
  const { endpoint, messages, createEvent } = await startStage('https://a.example/', { listed: 20 });
  const events = indices(30).map((i) => ({ ...createEvent(`learner-${i}`), at: Date.now() }));
  await messages.add(endpoint, events);
  const due = await messages.listDue(endpoint, Date.now() + 1000, 100);
  assert.equal(due.length, 30);
  const last = due
    .slice(15)
    .map((one) => ({ message: { ...one, status: 'delivered' } as const, retryAfterMs: null }));
  for (const wave of splitIntoParts(last, 4)) await messages.settle(endpoint, wave);
  const { messages: listed } = await messages.list(endpoint, null, 100);
  assert.deepEqual(idsOf(listed).reverse(), idsOf([...due.slice(0, 15), ...due.slice(25)]));
});

test('The deliverer ends a run after its time limit although messages are due', async (t) => {
  const stage = await startStage();
  for (const place of indices(10))
    await stage.write('ada', stage.createEvent('ada', 'mastery.reached', place));
  await stage.dispatch();
  let [clock, sent] = [performance.now(), 0];
  t.mock.method(performance, 'now', () => clock);
  await stage.deliverBy(async () => {
    [clock, sent] = [clock + 4000, sent + 1];
    return [{ status: 204, reason: null }];
  });
  assert.equal(sent, 3);
  const states = (await stage.list()).map(({ status }) => status).reverse();
  assert.deepEqual(states, [...Array(3).fill('delivered'), ...Array(7).fill('pending')]);
});
