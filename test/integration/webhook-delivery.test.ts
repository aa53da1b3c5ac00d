/** From events that wait in Redis to messages that endpoints have confirmed. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { createDeliveryPool } from '../../src/compute/thread-pools.js';
import {
  createWebhookEvent,
  toStreamFields,
  type WebhookType,
} from '../../src/contracts/webhooks/webhook-events.js';
import type { WebhookSetting } from '../../src/contracts/webhooks/webhooks.js';
import { splitIntoParts } from '../../src/lists.js';
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
import { exitAfterTests } from '../support/servers/linger.js';
import { startReceiver } from '../support/servers/receiver.js';
import { redisOf } from '../support/servers/service.js';

exitAfterTests();

const partitions = 4;
const logger = createLogger('silent', 'test');
const secret = `whsec_${Buffer.from('a secret of 24 bytes....').toString('base64')}`;
const thread = createDeliveryPool(64, logger);
after(() => thread.close());

const redis = await redisOf({ after }, await startTestRedis({ after }));

await openDeployment(redis, async () => false);
let made = 0;

const webhooks = createEndpointStore(redis);
const { signal } = new AbortController();

/** A tenant with an endpoint, and the parts that serve it. */
async function stage(url: string, limits: { waiting?: number; listed?: number } = {}) {
  made += 1;
  const tenant = `t${made}`;
  const eventTypes: WebhookSetting['eventTypes'] = ['mastery.reached', 'plateau.detected'];
  const endpoint = await webhooks.create(tenant, { url, eventTypes, description: null }, secret);
  const messages = createMessageStore(redis, limits);
  const streams = createEventStreams(redis, partitions);
  const counts = { delivered: 0, failed: 0, given_up: 0 };
  const handOut = createDispatcher({ streams, endpoints: webhooks, messages, logger });
  const parts = { endpoints: webhooks, messages, counts, logger };
  const deliverer = (send = thread.send) => createDeliverer({ ...parts, send, allowPrivate: true });
  const deliver = deliverer();
  const event = (userId: string, type: WebhookType = 'mastery.reached', place = 0) =>
    createWebhookEvent(type, tenant, userId, Date.now(), { user_id: userId, place });
  return {
    ...{ endpoint, messages, counts, event },
    placeOf: (userId: string) => partitionOf(tenant, userId, partitions),
    write: async (
      userId: string,
      one = event(userId),
      partition = partitionOf(tenant, userId, partitions),
    ) => {
      await redis.xadd(webhookEventsKey(partition), '*', ...toStreamFields(one));
      return one;
    },
    handOut: async () => {
      while (await handOut()) assert.ok(!signal.aborted);
    },
    deliver: () => deliver(endpoint, signal, () => undefined),
    /** As another process, which knows of no trouble. */
    deliverAnew: () => deliverer()(endpoint, signal, () => undefined),
    deliverBy: (send: typeof thread.send) => deliverer(send)(endpoint, signal, () => undefined),
    listed: async () => (await messages.list(endpoint, null, 1000)).messages,
    reason: async () => (await webhooks.find(tenant, endpoint.id))?.disabledReason,
    enable: () => webhooks.change(tenant, endpoint.id, (one) => ({ ...one, disabledReason: null })),
  };
}

const hurry = async (t: { endpoint: { readonly id: string } }): Promise<void> => {
  const due = `${messagesPrefix(t.endpoint.id)}:due`;
  for (const id of await redis.zrange(due, '0', '-1')) await redis.zadd(due, '1', id);
};

test('the schedule is that of the specification', () => {
  const delays = Array.from({ length: 10 }, (_, i) => computeRetryDelay(i + 1, 0));
  const seconds = delays.map((ms) => (ms === null ? null : ms / 1000));
  assert.deepEqual(seconds, [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400, null]);
  assert.equal(computeRetryDelay(1, 1), 5500);
});

test('pauses double, however many tries fail at the same time', () => {
  let [trouble, now] = [computeFailureState(undefined, 1), 1];
  for (let i = 0; i < 6; i++) trouble = computeFailureState(trouble, now);
  assert.ok(trouble.until <= now);
  const pauses = Array.from({ length: 10 }, () => {
    for (let i = 0; i < 8; i++) trouble = computeFailureState(trouble, now);
    const pause = trouble.until - now;
    now = trouble.until;
    return pause;
  });
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]);
});

test('wanted events become messages once, and are sent in the order of their learner', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const own = await stage(receiver.url);
  const wanted = [];
  for (let place = 0; place < 30; place++)
    wanted.push(await own.write('ada', own.event('ada', 'mastery.reached', place)));
  await own.write('ada', own.event('ada', 'goal.reached'));
  await Promise.all([own.handOut(), own.handOut()]);
  await own.handOut();
  await own.deliver();
  const got = await receiver.payloads(30, secret);
  assert.deepEqual(
    got.map(({ data }) => data.place),
    Array.from({ length: 30 }, (_, i) => i),
  );
  assert.deepEqual(
    receiver.received.map(({ id }) => id),
    wanted.map(({ id }) => id),
  );
  const listed = await own.listed();
  assert.deepEqual(
    listed.map(({ id }) => id).reverse(),
    wanted.map(({ id }) => id),
  );
  for (const one of listed) {
    assert.equal(one.status, 'delivered');
    assert.equal(one.tries, 1);
    assert.equal(one.lastStatus, 204);
    assert.equal(one.nextTryAt, null);
  }
  assert.equal(await redis.zscore(nextDeliveriesKey, `${own.endpoint.tenant}:${own.endpoint.id}`), null);
});

test('a tenant whose endpoints cannot be read waits alone', async () => {
  const [broken, own] = [await stage('https://a.example/'), await stage('https://a.example/')];
  const key = endpointsKey(broken.endpoint.tenant);
  const value = (await redis.hget(key, broken.endpoint.id)) ?? '';
  await redis.hset(key, broken.endpoint.id, value.replace('"v":1', '"v":2'));
  // In ada's own stream, and more than a page of it.
  for (let i = 0; i < 300; i++) await broken.write('ada', broken.event('ada'), own.placeOf('ada'));
  const { id } = await own.write('ada');
  await assert.rejects(own.handOut(), /not known to this version/);
  await assert.rejects(own.handOut(), /not known to this version/);
  assert.deepEqual(
    (await own.listed()).map((one) => one.id),
    [id],
  );
  await redis.hset(key, broken.endpoint.id, value);
  await own.handOut();
  assert.equal((await broken.listed()).length, 300);
});

test('an event of a newer version reaches who asks for all', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const own = await stage(receiver.url);
  const newer = { ...own.event('ada'), type: 'goal.changed' as WebhookType };
  await own.write('ada', newer);
  await own.handOut();
  assert.deepEqual(await own.listed(), [], 'nobody asks for it');
  const { tenant, id } = own.endpoint;
  await webhooks.change(tenant, id, (one) => ({ ...one, eventTypes: ['*'] }));
  await own.write('ada', newer);
  await own.handOut();
  await own.deliver();
  assert.deepEqual(
    (await own.listed()).map(({ type, status }) => [type, status]),
    [['goal.changed', 'delivered']],
  );
});

test('messages of a moment go in waves, one message of a learner in each, and are settled together', async () => {
  const own = await stage('https://a.example/');
  const learners = Array.from({ length: maxWaveMessages + 3 }, (_, i) => `learner-${i}`);
  for (const userId of [...learners, 'learner-0', 'learner-0']) await own.write(userId);
  await own.handOut();
  const waves: string[][] = [];
  await own.deliverBy(async ({ messages }) => {
    waves.push(messages.map(({ body }) => JSON.parse(body).data.user_id));
    return messages.map((_, i) => ({ status: i === 1 ? 503 : 200, reason: null }));
  });
  assert.deepEqual(
    waves.map((wave) => wave.length),
    [maxWaveMessages, 4, 1],
  );
  for (const wave of waves) assert.equal(new Set(wave).size, wave.length);
  const states = (await own.listed()).map(
    ({ status, lastStatus, tries }) => `${status} ${lastStatus} ${tries}`,
  );
  assert.deepEqual(new Set(states), new Set(['delivered 200 1', 'pending 503 1']));
  assert.equal(
    states.filter((state) => state.startsWith('pending')).length,
    2,
    "each reply is its own message's",
  );
});

test('after a failure one message finds out whether the receiver is there, and the others go in waves again', async () => {
  const own = await stage('https://a.example/');
  for (let i = 0; i < 82; i++) await own.write(`learner-${i}`);
  await own.handOut();
  const waves: number[] = [];
  await own.deliverBy(async ({ messages }) => {
    waves.push(messages.length);
    const isLastOfPage = waves.length === 4;
    return messages.map((_, i) => ({ status: isLastOfPage && i === 15 ? 503 : 204, reason: null }));
  });
  assert.deepEqual(waves, [...Array(4).fill(maxWaveMessages), 1, maxWaveMessages, 1]);
});

test('what failed is tried again by the schedule, with its id', async (t: TestContext) => {
  const receiver = await startReceiver(t, { answer: 500 });
  const own = await stage(receiver.url);
  const { id } = await own.write('ada');
  await own.handOut();
  await own.deliver();
  await own.deliver();
  assert.equal(receiver.received.length, 1, 'not before its time');
  const [first] = await own.listed();
  assert.ok(first?.nextTryAt !== null && first?.nextTryAt !== undefined);
  assert.ok(first.nextTryAt > Date.now() && first.nextTryAt < Date.now() + 5500);
  assert.deepEqual([first.status, first.tries, first.lastStatus], ['pending', 1, 500]);
  await hurry(own);
  receiver.answerWith(200);
  await own.deliver();
  assert.deepEqual(
    receiver.received.map((one) => one.id),
    [id, id],
  );
  assert.deepEqual(
    (await own.listed()).map(({ status, tries }) => [status, tries]),
    [['delivered', 2]],
  );
});

test('an endpoint that fails for the whole schedule is disabled, and a message can be sent again', async (t: TestContext) => {
  const receiver = await startReceiver(t, { answer: 500 });
  const own = await stage(receiver.url);
  const { id } = await own.write('ada');
  await own.handOut();
  for (let tries = 0; tries < 10; tries++) {
    await hurry(own);
    await own.deliverAnew();
  }
  assert.equal(receiver.received.length, 10);
  assert.equal(await own.reason(), 'failing');
  assert.deepEqual(
    (await own.listed()).map(({ status, nextTryAt }) => [status, nextTryAt]),
    [['failed', null]],
  );
  await own.enable();
  receiver.answerWith(200);
  assert.equal(await own.messages.retry(own.endpoint, 'msg_unknown'), false);
  assert.equal(await own.messages.retry(own.endpoint, id), true);
  await own.deliver();
  assert.equal(receiver.received.at(-1)?.id, id);
  assert.equal((await own.listed())[0]?.status, 'delivered');
});

test('410 disables at once; what waits stays', async (t: TestContext) => {
  const receiver = await startReceiver(t, { answer: 410 });
  const own = await stage(receiver.url);
  await own.write('ada');
  await own.handOut();
  await own.deliver();
  assert.equal(await own.reason(), 'gone');
  assert.equal((await own.listed())[0]?.status, 'failed');
  await own.write('ben');
  await own.handOut();
  assert.equal((await own.listed()).length, 1, 'a disabled endpoint is handed nothing');

  const crowd = await stage(receiver.url);
  for (let i = 0; i < 60; i++) await crowd.write(`learner-${i}`);
  await crowd.handOut();
  await crowd.deliver();
  const failed = (await crowd.listed()).filter(({ status }) => status === 'failed').length;
  assert.ok(failed >= 1 && failed <= maxWaveMessages, `${failed} of 60 failed for good`);
});

test('a receiver that is down costs its other messages no tries', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  await receiver.stop();
  const own = await stage(receiver.url);
  for (let i = 0; i < 100; i++) await own.write(`learner-${i}`);
  await own.handOut();
  await own.deliver();
  const tried = (await own.listed()).filter(({ tries }) => tries > 0);
  assert.ok(tried.length >= 8 && tried.length <= maxWaveMessages, `${tried.length} of 100 were tried`);
  for (const { lastStatus, lastError } of tried)
    assert.deepEqual([lastStatus, lastError], [null, 'connection refused (ECONNREFUSED)']);
  const back = await startReceiver(t, { port: receiver.port });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await hurry(own);
  await own.deliver();
  assert.equal(new Set(back.received.map(({ id }) => id)).size, 100);
});

test('at its bound an endpoint is disabled, and keeps what it has', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const own = await stage(receiver.url, { waiting: 250 });
  for (let i = 0; i < 300; i++) await own.write(`learner-${i}`);
  await own.handOut();
  assert.equal(await own.reason(), 'undelivered');
  assert.equal((await own.listed()).length, 250);
});

test('messages are forgotten by their ids, also while they are sent', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const own = await stage(receiver.url);
  const { id } = await own.write('ada');
  await own.write('ben');
  await own.handOut();
  const [ada] = (await own.messages.listDue(own.endpoint, Date.now(), 10)).filter((one) => one.id === id);
  assert.ok(ada);
  await own.messages.remove(own.endpoint, [{ id }]);
  assert.equal(await own.messages.settle(own.endpoint, [{ message: ada, retryAfterMs: 5000 }]), 0);
  await own.deliver();
  assert.equal(receiver.received.length, 1);
  assert.notEqual(receiver.received[0]?.id, id);
  const left = await redis.keys(`${messagesPrefix(own.endpoint.id)}:*`);
  await webhooks.remove(own.endpoint.tenant, own.endpoint.id);
  assert.equal(left.length, 4);
  assert.deepEqual(await redis.keys(`${messagesPrefix(own.endpoint.id)}:*`), []);
});

test('who hands out late leaves nothing of an endpoint that was deleted', async () => {
  const own = await stage('https://a.example/');
  const { endpoint, messages } = own;
  const late = { ...own.event('ada'), at: Date.now() };
  await messages.add(endpoint, [late]);
  await webhooks.remove(endpoint.tenant, endpoint.id);
  await messages.add(endpoint, [late]);
  const tried = { ...late, tries: 1, lastStatus: 500, lastError: null, status: 'pending' } as const;
  assert.equal(await messages.settle(endpoint, [{ message: tried, retryAfterMs: 5000 }]), 0);
  assert.deepEqual(await redis.keys(`${messagesPrefix(endpoint.id)}:*`), []);
  assert.equal(await redis.zscore(nextDeliveriesKey, `${endpoint.tenant}:${endpoint.id}`), null);
});

test('a message that is forgotten while it is read is not sent without its body', async () => {
  const { endpoint, messages, event } = await stage('https://a.example/');
  const [ada, ben] = ['ada', 'ben'].map((userId) => ({ ...event(userId), at: Date.now() }));
  assert.ok(ada && ben);
  await messages.add(endpoint, [ada, ben]);
  await redis.hdel(`${messagesPrefix(endpoint.id)}:b`, ada.id);
  const due = await messages.listDue(endpoint, Date.now() + 1000, 10);
  assert.deepEqual(
    due.map(({ id }) => id),
    [ben.id],
  );
});

test('a message is kept for seven days, and one that is sent again no longer than its state', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const { endpoint, messages, write, handOut, deliver } = await stage(receiver.url);
  const key = (name: string): string => `${messagesPrefix(endpoint.id)}:${name}`;
  const { id } = await write('ada');
  await handOut();
  await deliver();
  assert.equal(await redis.exists(key('due')), 0);
  await messages.retry(endpoint, id);
  for (const name of ['s', 'b', 'log', 'due']) assert.ok((await redis.pttl(key(name))) > 0, name);
  await redis.zadd(key('log'), 'XX', 1000 * (Date.now() - 7 * 86_400_000) - 1, id);
  assert.deepEqual(await messages.list(endpoint, null, 10), { messages: [], next: null });
  await messages.scheduleNextRun(endpoint, 0);
  for (const name of ['s', 'b', 'log', 'due']) assert.equal(await redis.exists(key(name)), 0, name);
});

test('where the oldest messages wait, those that are delivered after them take no room', async () => {
  const { endpoint, messages, event } = await stage('https://a.example/', { listed: 20 });
  const all = Array.from({ length: 30 }, (_, i) => ({ ...event(`learner-${i}`), at: Date.now() }));
  await messages.add(endpoint, all);
  const due = await messages.listDue(endpoint, Date.now() + 1000, 100);
  assert.equal(due.length, 30, 'none that waits is lost');
  const last = due
    .slice(15)
    .map((one) => ({ message: { ...one, status: 'delivered' } as const, retryAfterMs: null }));
  for (const wave of splitIntoParts(last, 4)) await messages.settle(endpoint, wave);
  const { messages: listed } = await messages.list(endpoint, null, 100);
  assert.deepEqual(
    listed.map(({ id }) => id).reverse(),
    [...due.slice(0, 15), ...due.slice(25)].map(({ id }) => id),
  );
});

test('a run sends nothing more after its time, however many messages are due', async (t: TestContext) => {
  const own = await stage('https://a.example/');
  for (let place = 0; place < 10; place++) await own.write('ada', own.event('ada', 'mastery.reached', place));
  await own.handOut();
  let [clock, sent] = [performance.now(), 0];
  t.mock.method(performance, 'now', () => clock);
  await own.deliverBy(async () => {
    [clock, sent] = [clock + 4000, sent + 1];
    return [{ status: 204, reason: null }];
  });
  assert.equal(sent, 3);
  const states = (await own.listed()).map(({ status }) => status).reverse();
  assert.deepEqual(states, [...Array(3).fill('delivered'), ...Array(7).fill('pending')]);
});

test('pages of deliveries, newest first', async (t: TestContext) => {
  const receiver = await startReceiver(t);
  const own = await stage(receiver.url);
  for (let i = 0; i < 25; i++) await own.write(`learner-${i}`);
  await own.handOut();
  const ids: string[] = [];
  let before: string | null = null;
  do {
    const page = await own.messages.list(own.endpoint, before, 10);
    ids.push(...page.messages.map((one) => one.id));
    before = page.next;
  } while (before !== null);
  assert.deepEqual(
    ids,
    (await own.listed()).map((one) => one.id),
  );
  assert.equal(new Set(ids).size, 25);
  assert.equal((await own.messages.list(own.endpoint, null, 25)).next, null, 'the last page says so');
});
