/**
 * Webhooks while processes are killed and the receiver is gone, refuses or hangs: each event that follows from the rows in
 * ClickHouse is delivered, no other is, and those of a learner come in their order where none failed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupBy, indices } from '../../src/lists.js';
import {
  messagesPrefix,
  nextDeliveriesKey,
  outboxKey,
  webhookEventsKey,
} from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { createMessageStore } from '../../src/store/webhooks/messages.js';
import { seeded } from '../support/builders/random.js';
import {
  expectedEvents,
  flatAndSteep,
  sendUntilCounted,
  skillTypes,
} from '../support/builders/skill-events.js';
import {
  type FaultyReceiver,
  type ReceiverMode,
  startFaultyReceiver,
  type Told,
} from '../support/fault/faulty-receiver.js';
import { type Part, type Stand, startSplit, startWhole } from '../support/fault/stand.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { faultSeed, isLongForm, progress } from '../support/runner/long-form.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { verified } from '../support/servers/receiver.js';
import { clickhouseOf, redisOf, type Scoped } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const random = seeded(faultSeed);

/** A process is killed after one of the answers, or when the receiver has got a request and not answered it yet. */
interface Phase {
  readonly receiver: ReceiverMode;
  readonly kill?: { readonly part: Part; readonly at: 'answer' | 'request' };
}

/** @param parts that are killed in turns */
const everyFault = (...parts: readonly [Part, Part]): Phase[] => [
  ...(['well', 'gone', 'refusing', 'hanging'] as const).flatMap((receiver): Phase[] => [
    { receiver, kill: { part: parts[0], at: 'answer' } },
    { receiver, kill: { part: parts[1], at: receiver === 'gone' ? 'answer' : 'request' } },
  ]),
];

const form = isLongForm ? { learners: 200, answers: 12 } : { learners: 12, answers: 18 };
const short: readonly Phase[] = [
  { receiver: 'well', kill: { part: 'api', at: 'request' } },
  { receiver: 'gone' },
  { receiver: 'refusing' },
  { receiver: 'hanging' },
];
const learners = indices(form.learners).map((i) => `learner-${i}`);

async function endpointOf(by: Caller, url: string): Promise<{ id: string; secret: string }> {
  const body = JSON.stringify({ url, event_types: skillTypes });
  const { status, json } = await by.call({ path: '/api/v1/webhooks', body });
  assert.equal(status, 201);
  return { id: json.data.webhook_id, secret: json.data.secret };
}

interface Scene {
  readonly stand: Stand;
  readonly by: Caller;
  readonly receiver: FaultyReceiver;
  readonly endpoint: string;
}

/** Kills the part at one of the first calls. */
function killer({ stand, by }: Scene, part: Part, within: number) {
  let left = 1 + Math.floor(within * random());
  let killed: number | undefined;
  return {
    call: (): void => {
      left -= 1;
      if (left !== 0) return;
      [killed] = stand.pids(part);
      process.kill(killed ?? 0, 'SIGKILL');
    },
    /** Whether it was killed, and there is another that serves. */
    isOver: async (): Promise<boolean> =>
      killed !== undefined &&
      stand.pids(part)[0] !== killed &&
      (await by.get('/api/v1/health').then(
        ({ status }) => status === 200,
        () => false,
      )),
  };
}

/** Each learner answers for a while, until the receiver was met as it is and the process was killed. */
async function runPhase(scene: Scene, number: number, { receiver: mode, kill }: Phase): Promise<void> {
  const { by, receiver } = scene;
  progress(`${scene.stand.name}: ${mode}, kill ${kill?.part ?? 'nothing'}`);
  await receiver.become(mode);
  const before = receiver.told.length;
  const within = kill?.at === 'request' ? 3 : (form.learners * form.answers) / 2;
  const killing = kill && killer(scene, kill.part, within);
  receiver.onRequest(() => kill?.at === 'request' && killing?.call());
  await Promise.all(
    learners.map((userId) => {
      const answers = flatAndSteep(random, userId, form.answers, `${userId}-${number}`);
      return sendUntilCounted(
        () => by,
        answers,
        () => kill?.at === 'answer' && killing?.call(),
      );
    }),
  );
  if (killing) await waitFor('a kill, and a new process', killing.isOver);
  if (mode === 'gone') await waitFor('a try without a response', () => hasUnheard(scene));
  else await waitFor('a request', () => receiver.told.length > before);
}

const hasUnheard = async ({ by, endpoint }: Scene): Promise<boolean> => {
  const { json } = await by.get(`/api/v1/webhooks/${endpoint}/deliveries?limit=1000`);
  return json.data.deliveries.some(
    (one: { tries: number; last_status: number | null }) => one.tries > 0 && one.last_status === null,
  );
};

/** Delivers what waits, without the pauses of the schedule. @returns tries by the message's id */
async function deliverAll(t: Scoped, { stand, endpoint: id }: Scene): Promise<Map<string, number>> {
  const redis = await redisOf(t, stand.redisUrl);
  const streams = indices(defaultPartitions).flatMap((one) => [outboxKey(one), webhookEventsKey(one)]);
  await Promise.all(streams.map((key) => emptied(redis, key)));
  const [tenant, due] = [stand.tenants[0] ?? '', `${messagesPrefix(id)}:due`];
  const tries = new Map<string, number>();
  await waitFor('delivery of all messages', async () => {
    const now = Date.now();
    // Those that never failed are due, and keep their order.
    for (const message of await redis.zrangebyscore(due, 1000 * now, '+inf'))
      await redis.zadd(due, 'XX', 1000 * now, message);
    if ((await redis.zcard(due)) > 0) await redis.zadd(nextDeliveriesKey, now, `${tenant}:${id}`);
    let waiting = 0;
    for await (const page of createMessageStore(redis).listAll({ tenant, id }))
      for (const message of page) {
        tries.set(message.id, message.tries);
        if (message.status !== 'delivered') waiting += 1;
      }
    return waiting === 0;
  });
  return tries;
}

interface Delivered {
  readonly user: string;
  readonly event: string;
}

const deliveredOf = (one: Told, secret: string): Delivered => {
  const { type, data } = verified(one, secret);
  return { user: `${data.user_id}`, event: JSON.stringify([type, data.skill_id, data.event_id]) };
};

async function runOn(t: Scoped, stand: Stand, phases: readonly Phase[]): Promise<void> {
  const receiver = await startFaultyReceiver(t);
  const tenant = stand.tenants[0] ?? '';
  const by = callerOf(stand, tenant);
  const { id, secret } = await endpointOf(by, receiver.url);
  const scene = { stand, by, receiver, endpoint: id };
  for (const [number, phase] of phases.entries()) await runPhase(scene, number, phase);
  receiver.onRequest(() => undefined);
  await receiver.become('well');
  const tries = await deliverAll(t, scene);
  const rows = await expectedEvents(clickhouseOf(t, stand), { tenant });
  const expected = [...rows].flatMap(([user, own]) =>
    own.map((event) => ({ user, event: JSON.stringify(event) })),
  );

  const messages = new Map(receiver.told.map((one) => [one.id, deliveredOf(one, secret)]));
  const confirmed = receiver.told.filter(({ mode }) => mode === 'well');
  const lists = [expected, [...messages.values()], [...new Set(confirmed.map((one) => one.id))]];
  const [events, told, deliveredOnce] = lists.map(({ length }) => length);
  const failed = [...tries.values()].filter((count) => count > 1).length;
  const requests = receiver.told.length;
  const duplicates = confirmed.length - (deliveredOnce ?? 0);
  const counts = { events, messages: told, requests, confirmed: confirmed.length, duplicates, failed };
  process.stdout.write(`${JSON.stringify({ stand: stand.name, phases: phases.length, ...counts })}\n`);

  const sorted = (list: readonly Delivered[]): string[] => list.map((one) => JSON.stringify(one)).sort();
  assert.deepEqual(
    sorted([...messages.values()]),
    sorted(expected),
    'each event is one message, and no other is',
  );
  assert.equal(deliveredOnce, events, 'each was confirmed');
  // Messages stand in the order of their first arrival; one that failed may be overtaken.
  const arrived = groupBy(
    [...messages].filter(([messageId]) => tries.get(messageId) === 1).map(([, one]) => one),
    ({ user }) => user,
  );
  for (const [user, own] of arrived) {
    const untroubled = new Set(own.map(({ event }) => event));
    const wanted = (rows.get(user) ?? []).map((event) => JSON.stringify(event));
    assert.deepEqual(
      [...untroubled],
      wanted.filter((event) => untroubled.has(event)),
      user,
    );
  }
  assert.ok(
    [...arrived.values()].some((own) => own.length > 1),
    'order was compared',
  );
}

const env = { WEBHOOK_ALLOW_PRIVATE: 'true' };

test(`one process, seed ${faultSeed}`, async (t) => {
  const servers = isLongForm ? {} : { CLICKHOUSE_URL: (await freshDatabase()).clickhouseUrl };
  const stand = await startWhole(t, 1, { ...env, ...servers });
  await runOn(t, stand, isLongForm ? everyFault('api', 'api') : short);
});

if (isLongForm)
  test(`api and pipeline, seed ${faultSeed}`, async (t) => {
    const stand = await startSplit(t, { fsync: 'everysec', env });
    await runOn(t, stand, everyFault('api', 'pipeline'));
  });
