import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
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
import { type Deployment, type Part, startSplit, startWhole } from '../support/fault/deployment.js';
import { callerOf } from '../support/http/http.js';
import { faultSeed, isLongForm, progress } from '../support/runner/long-form.js';
import type { Scoped } from '../support/scope.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { type Received, startReceiver, verified } from '../support/servers/receiver.js';
import { clickhouseOf, redisOf } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const random = seeded(faultSeed);
const form = isLongForm ? { learners: 200, answers: 12 } : { learners: 12, answers: 12 };
const learners = indices(form.learners).map((i) => `learner-${i}`);

type ReceiverMode = 'ok' | 'down' | 'failing' | 'hanging';

/** Kills a part after an answer, or when the receiver has a request and has not responded. */
interface Phase {
  readonly mode: ReceiverMode;
  readonly kill?: { readonly part: Part; readonly at: 'answer' | 'request' };
}

const shortPhases: readonly Phase[] = [
  { mode: 'ok', kill: { part: 'api', at: 'request' } },
  { mode: 'down' },
  { mode: 'failing' },
  { mode: 'hanging' },
];

const longPhases = (parts: readonly [Part, Part]): Phase[] =>
  (['ok', 'down', 'failing', 'hanging'] as const).flatMap((mode): Phase[] => [
    { mode, kill: { part: parts[0], at: 'answer' } },
    { mode, kill: { part: parts[1], at: mode === 'down' ? 'answer' : 'request' } },
  ]);

/** A receiver on one port that can fail. */
async function startFaultyReceiver(t: Scoped) {
  const requests: (Received & { mode: ReceiverMode })[] = [];
  const pending: ServerResponse[] = [];
  let mode: ReceiverMode = 'ok';
  let onRequest = (): void => undefined;
  const answer = (request: Received, response: ServerResponse): void => {
    requests.push({ ...request, mode });
    onRequest();
    if (mode === 'hanging') pending.push(response);
    else response.writeHead(mode === 'ok' ? 204 : 500).end();
  };
  let server = await startReceiver(t, { answer });
  const { url, port } = server;
  const setMode = async (next: ReceiverMode, listener: () => void): Promise<void> => {
    if (next === 'down') await server.stop();
    else if (mode === 'down') server = await startReceiver(t, { port, answer });
    mode = next;
    onRequest = listener;
    for (const response of pending.splice(0)) response.destroy();
  };
  return { url, requests, setMode };
}

async function deliverEvents(t: TestContext, deployment: Deployment, phases: readonly Phase[]) {
  const receiver = await startFaultyReceiver(t);
  const [tenant = ''] = deployment.tenants;
  const caller = callerOf(deployment, tenant);
  const body = JSON.stringify({ url: receiver.url, event_types: skillTypes });
  const created = await caller.call({ path: '/api/v1/webhooks', body });
  assert.equal(created.status, 201);
  const { webhook_id: id, secret } = created.json.data;

  const hasLostTry = async (): Promise<boolean> => {
    const { json } = await caller.get(`/api/v1/webhooks/${id}/deliveries?limit=1000`);
    return json.data.deliveries.some(
      (one: { tries: number; last_status: number | null }) => one.tries > 0 && one.last_status === null,
    );
  };

  /** All learners answer until the fault and the kill had an effect. */
  const runPhase = async ({ mode, kill }: Phase, number: number): Promise<void> => {
    progress(`${deployment.name}: receiver ${mode}, kill ${kill?.part ?? 'nothing'}`);
    const sentBefore = receiver.requests.length;
    let callsLeft = 1 + Math.floor(random() * (kill?.at === 'request' ? 3 : learners.length * 6));
    let killed = 0;
    const killOnce = (at: 'answer' | 'request'): void => {
      if (kill?.at !== at) return;
      callsLeft -= 1;
      if (callsLeft !== 0) return;
      [killed = 0] = deployment.pids(kill.part);
      process.kill(killed, 'SIGKILL');
    };
    await receiver.setMode(mode, () => killOnce('request'));
    const answerAll = (userId: string): Promise<void> => {
      const answers = flatAndSteep(random, userId, form.answers, `${userId}-${number}`);
      const onAnswer = (): void => killOnce('answer');
      return sendUntilCounted(() => caller, answers, onAnswer);
    };
    await Promise.all(learners.map(answerAll));
    if (kill !== undefined)
      await waitFor('a new process', async () => {
        if (killed === 0 || deployment.pids(kill.part)[0] === killed) return false;
        const health = await caller.get('/api/v1/health').catch(() => null);
        return health?.status === 200;
      });
    if (mode === 'down') await waitFor('a try without a response', hasLostTry);
    else await waitFor('a request', () => receiver.requests.length > sentBefore);
  };
  for (const [number, phase] of phases.entries()) await runPhase(phase, number);
  await receiver.setMode('ok', () => undefined);

  const tries = await deliverAll(t, deployment, id);
  const rows = await expectedEvents(clickhouseOf(t, deployment), { tenant });
  const expected = [...rows].flatMap(([user, own]) => own.map((event) => JSON.stringify([user, ...event])));
  // In the order of their first arrival.
  const messages = new Map(
    receiver.requests.map((request) => {
      const { type, data } = verified(request, secret);
      return [request.id, JSON.stringify([data.user_id, type, data.skill_id, data.event_id])];
    }),
  );
  const confirmed = receiver.requests.filter(({ mode }) => mode === 'ok').map((request) => request.id);
  t.diagnostic(`${deployment.name}: ${expected.length} events, ${receiver.requests.length} requests`);
  assert.deepEqual([...messages.values()].sort(), [...expected].sort(), 'each event is one message');
  assert.equal(new Set(confirmed).size, expected.length, 'each message was confirmed');

  // A message that failed may be overtaken.
  const untroubled = [...messages].filter(([message]) => tries.get(message) === 1).map(([, event]) => event);
  const byUser = groupBy(untroubled, (event) => `${JSON.parse(event)[0]}`);
  for (const [user, own] of byUser) {
    const inOrder = expected.filter((event) => own.includes(event));
    assert.deepEqual(own, inOrder, `the events of ${user} are out of order`);
  }
  const canCompare = [...byUser.values()].some((own) => own.length > 1);
  assert.ok(canCompare, 'no learner has two events to compare');
}

/** Delivers all messages without the pauses between tries. @returns tries by message id */
async function deliverAll(t: Scoped, deployment: Deployment, id: string): Promise<Map<string, number>> {
  const redis = await redisOf(t, deployment.redisUrl);
  const streams = indices(defaultPartitions).flatMap((one) => [outboxKey(one), webhookEventsKey(one)]);
  await Promise.all(streams.map((key) => emptied(redis, key)));
  const [tenant = ''] = deployment.tenants;
  const due = `${messagesPrefix(id)}:due`;
  const tries = new Map<string, number>();
  await waitFor('delivery of all messages', async () => {
    const now = Date.now();
    // Only failed messages are due later; the others keep their order.
    for (const message of await redis.zrangebyscore(due, 1000 * now, '+inf'))
      await redis.zadd(due, 'XX', 1000 * now, message);
    if ((await redis.zcard(due)) > 0) await redis.zadd(nextDeliveriesKey, now, `${tenant}:${id}`);
    let pending = 0;
    for await (const page of createMessageStore(redis).listAll({ tenant, id }))
      for (const message of page) {
        tries.set(message.id, message.tries);
        if (message.status !== 'delivered') pending += 1;
      }
    return pending === 0;
  });
  return tries;
}

const env = { WEBHOOK_ALLOW_PRIVATE: 'true' };
const promise = 'deliver each event once or more, in order per learner, whatever fails';

test(`Webhooks of one process ${promise}`, async (t) => {
  t.diagnostic(`seed ${faultSeed}`);
  const servers = isLongForm ? {} : { CLICKHOUSE_URL: (await freshDatabase()).clickhouseUrl };
  const deployment = await startWhole(t, 1, { ...env, ...servers });
  await deliverEvents(t, deployment, isLongForm ? longPhases(['api', 'api']) : shortPhases);
});

if (isLongForm)
  test(`Webhooks of an API and a pipeline process ${promise}`, async (t) => {
    const deployment = await startSplit(t, 'everysec', env);
    await deliverEvents(t, deployment, longPhases(['api', 'pipeline']));
  });
