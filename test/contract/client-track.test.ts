/** The queue of the client: batches, order, retries, rejected answers, and the store. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import {
  type Answer,
  type AnswerStore,
  Skilltrace,
  type SkilltraceOptions,
  type StoredAnswer,
} from '../../src/client/index.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { computeSum } from '../../src/lists.js';
import { fileStore } from '../support/client/file-store.js';
import type { Scoped } from '../support/scope.js';
import { type Front, startFront } from '../support/servers/front.js';
import { sharedService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const direct = new Skilltrace({ baseUrl: service.baseUrl, apiKey: service.key });
const answerOf = (user_id: string, change: Partial<Omit<Answer, 'skill_id' | 'skill_ids'>> = {}): Answer => ({
  ...{ user_id, skill_id: 'algebra', is_correct: true },
  ...change,
});

/** A client behind a proxy, and the answers and errors that it reports. */
async function startClient(t: Scoped, options: Partial<SkilltraceOptions> = {}) {
  const front = await startFront(t, service);
  const undelivered: string[] = [];
  const stopped: string[] = [];
  const client = new Skilltrace({
    baseUrl: front.baseUrl,
    retry: { firstDelayMs: 5, longestDelayMs: 20 },
    onUndelivered: ({ item_id }, { code, message, details }) =>
      undelivered.push(`${item_id} ${code} ${message} ${details.length}`),
    onStopped: ({ code }) => stopped.push(code),
    ...options,
    queue: { lingerMs: 10, ...options.queue },
  });
  t.after(() => client.close({ timeoutMs: 0 }));
  return { front, client, undelivered, stopped };
}

const eventsOf = (body: string): Answer[] => JSON.parse(body).events ?? [JSON.parse(body)];
const sizesOf = ({ passed }: Front): number[] => passed.map(({ body }) => eventsOf(body).length);

/** Items of the learner's counted answers, oldest first. */
async function countedItems(user: string): Promise<(string | null)[]> {
  const items: (string | null)[] = [];
  for await (const { item_id } of direct.allAttempts(user)) items.unshift(item_id);
  return items;
}

const names = (count: number, prefix = 'i'): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test('Skilltrace sends a batch when it is full or after lingerMs, with one answer per learner', async (t) => {
  const { client, front } = await startClient(t, { queue: { batchAnswers: 3, requests: 1, lingerMs: 200 } });
  const ids = await Promise.all(names(4, 'batch-').map((user) => client.track(answerOf(user))));
  assert.equal(new Set(ids).size, 4);
  await client.track(answerOf('batch-0'));
  await waitFor('an empty queue', () => client.queued === 0);
  assert.deepEqual([sizesOf(front)[0], computeSum(sizesOf(front))], [3, 5]);
  for (const { body } of front.passed) {
    const users = eventsOf(body).map(({ user_id }) => user_id);
    assert.equal(new Set(users).size, users.length);
  }
});

test('Skilltrace counts the answers of a learner once and in order while requests fail in every way', async (t) => {
  const { client, front } = await startClient(t, { timeoutMs: 3000 });
  const error = JSON.stringify({ error: { code: 'INTERNAL', message: 'a defect' } });
  const failures = ['lost', { status: 500, body: error }, { status: 502, body: 'bad gateway' }] as const;
  front.decide = (_, i) => failures[i % 5] ?? null;
  const users = names(5, 'order-');
  for (const item_id of names(8)) for (const user of users) await client.track(answerOf(user, { item_id }));
  await client.flush();
  for (const user of users) assert.deepEqual(await countedItems(user), names(8), user);
});

test('Skilltrace reports the rejected answer of a batch and delivers the others', async (t) => {
  const { client, undelivered } = await startClient(t);
  const times = ['2020-01-01T00:00:00Z', 'yesterday', undefined, '2020-01-01T00:00:00Z'];
  for (const [i, occurred_at] of times.entries())
    await client.track(answerOf(`mixed-${i}`, { item_id: `i${i}`, occurred_at }));
  await client.track(answerOf('mixed-1', { item_id: 'next' }));
  await client.flush();
  assert.equal(undelivered.length, 1);
  assert.match(undelivered[0] ?? '', /^i1 INVALID_REQUEST /);
  assert.deepEqual(await countedItems('mixed-1'), ['next']);
  assert.deepEqual(await countedItems('mixed-3'), ['i3']);
});

test('Skilltrace reports the error of each answer when the whole batch is rejected', async (t) => {
  const { client, front, undelivered } = await startClient(t);
  await direct.trackAnswer(answerOf('all-1', { event_id: 'used' }));
  await client.track(answerOf('all-0', { item_id: 'a', confidence_score: 9 }));
  await client.track(answerOf('all-1', { item_id: 'b', event_id: 'used' }));
  await client.flush();
  assert.deepEqual([sizesOf(front), undelivered.length], [[2], 2]);
  assert.equal(undelivered[0], 'a INVALID_REQUEST must be <= 5 1');
  assert.match(undelivered[1] ?? '', /^b INVALID_REQUEST This event_id was used for a different event/);
});

test('Skilltrace halves a batch that a proxy rejects with 413, and sends smaller ones afterwards', async (t) => {
  const { client, front } = await startClient(t, { queue: { requests: 1, batchAnswers: 32 } });
  front.decide = ({ body }) => (body.length > 2000 ? { status: 413, body: '<html>' } : null);
  const users = names(32, 'large-');
  for (const user of users) await client.track(answerOf(user));
  await client.flush();
  const before = front.passed.length;
  for (const user of users) await client.track(answerOf(user));
  await client.flush();
  const tooLarge = front.passed.slice(before).filter(({ body }) => body.length > 2000);
  assert.deepEqual(tooLarge, []);
  assert.equal((await countedItems('large-31')).length, 2);
});

test('track rejects with QUEUE_FULL while the queue is full', async (t) => {
  const { client, front } = await startClient(t, { queue: { answers: 3 } });
  front.decide = () => ({ status: 503 });
  for (const user of names(3, 'full-')) await client.track(answerOf(user));
  await assert.rejects(client.track(answerOf('full-3')), { code: 'QUEUE_FULL' });
  front.decide = () => null;
  await client.flush();
  await client.track(answerOf('full-3'));
  await client.flush();
  assert.equal((await countedItems('full-3')).length, 1);
});

test('Skilltrace pauses the queue for the Retry-After of a 429, and until the reset of a used up quota', async (t) => {
  const limited = { status: 429, headers: { 'Retry-After': '1' } };
  const usedUp = { status: 200, headers: { RateLimit: '"default";r=0;t=1' }, body: '{"data":{}}' };
  for (const [name, reply] of Object.entries({ limited, usedUp })) {
    const { client, front } = await startClient(t, { queue: { batchAnswers: 1, requests: 1 } });
    front.decide = (_, i) => (i === 0 ? reply : null);
    await client.track(answerOf(`${name}-0`));
    await waitFor('the first request', () => front.passed.length === 1);
    for (const user of names(5, `${name}-`)) await client.track(answerOf(user));
    await client.flush();
    const [first, second] = front.passed;
    const waited = (second?.at ?? 0) - (first?.at ?? 0);
    assert.ok(waited >= 990, `${name}: ${waited} ms`);
    assert.equal((await countedItems(`${name}-0`)).length, reply === limited ? 2 : 1);
  }
});

test('Skilltrace stops on a rejected key, keeps the queue, and resumes with the next flush', async (t) => {
  let apiKey = 'wrong';
  const { client, front, stopped, undelivered } = await startClient(t, { apiKey: async () => apiKey });
  for (const item_id of names(3)) await client.track(answerOf('key', { item_id }));
  await assert.rejects(client.flush(), { code: 'UNAUTHORIZED' });
  const requests = front.passed.length;
  await client.track(answerOf('key-other'));
  assert.deepEqual([client.queued, stopped, undelivered, requests], [4, ['UNAUTHORIZED'], [], 1]);
  apiKey = service.key;
  await client.flush();
  assert.deepEqual(await countedItems('key'), names(3));
});

test('flush rejects on its timeout or signal and leaves the queue unchanged', async (t) => {
  const { client, front } = await startClient(t);
  front.decide = () => ({ status: 503 });
  await client.track(answerOf('flush'));
  await assert.rejects(client.flush({ timeoutMs: 20 }), { code: 'TIMEOUT' });
  await assert.rejects(client.flush({ signal: AbortSignal.abort() }), { code: 'ABORTED' });
  front.decide = () => null;
  await client.flush();
  assert.equal((await countedItems('flush')).length, 1);
});

test('close flushes at the end of an `await using` block, and reports answers that it cannot deliver', async (t) => {
  const { front, client, undelivered } = await startClient(t);
  {
    await using other = new Skilltrace({ baseUrl: front.baseUrl });
    await other.track(answerOf('block', { item_id: 'in time' }));
  }
  assert.deepEqual(await countedItems('block'), ['in time']);
  front.decide = () => 'silence';
  await client.track(answerOf('block', { item_id: 'late' }));
  assert.equal(await client.close({ timeoutMs: 20 }), 0);
  assert.equal(undelivered.length, 1);
  assert.match(undelivered[0] ?? '', /^late CLOSED /);
  await assert.rejects(client.track(answerOf('block')), { code: 'CLOSED' });
});

test('Skilltrace delivers the stored answers of a killed process once and in order', async (t) => {
  const file = join(await tempDir(t), 'unsent');
  const program = new URL('../support/client/unsent-process.js', import.meta.url).pathname;
  const nowhere = `http://127.0.0.1:${await findFreePort()}`;
  const child = spawn(process.execPath, [program, file, nowhere, 'killed', '20'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'close');
  const { client, front } = await startClient(t, { store: fileStore(file) });
  await client.track(answerOf('killed', { item_id: 'item-20' }));
  front.decide = (_, i) => (i % 3 === 0 ? 'lost' : null);
  await client.flush();
  assert.deepEqual(await countedItems('killed'), names(21, 'item-'));
  assert.deepEqual(await fileStore(file).load(), []);
});

test('Skilltrace leaves unsent answers in the store, and reports expired ones without sending them', async (t) => {
  const store = fileStore(join(await tempDir(t), 'unsent'));
  const { client, front } = await startClient(t, { store });
  front.decide = () => ({ status: 503 });
  await client.track(answerOf('left', { item_id: 'kept' }));
  assert.equal(await client.close({ timeoutMs: 20 }), 1);
  const [kept] = await store.load();
  const old = { answer: { ...kept?.answer, event_id: 'old', item_id: 'old' }, queuedAt: 0 } as StoredAnswer;
  await store.add([old]);
  const next = await startClient(t, { store });
  await next.client.flush();
  assert.equal(next.undelivered.length, 1);
  assert.match(next.undelivered[0] ?? '', /^old EXPIRED /);
  assert.deepEqual(await countedItems('left'), ['kept']);
  assert.deepEqual(await store.load(), []);
});

test('track and flush reject with STORE_FAILED while the store fails, and succeed afterwards', async (t) => {
  const working = fileStore(join(await tempDir(t), 'unsent'));
  let isBroken = true;
  const failIfBroken = async (): Promise<void> => {
    if (isBroken) throw new Error('disk full');
  };
  const store: AnswerStore = {
    load: () => working.load(),
    add: (answers) => failIfBroken().then(() => working.add(answers)),
    remove: (answers) => failIfBroken().then(() => working.remove(answers)),
  };
  const { client } = await startClient(t, { store });
  await assert.rejects(client.track(answerOf('store')), { code: 'STORE_FAILED' });
  isBroken = false;
  await client.track(answerOf('store'));
  isBroken = true;
  await assert.rejects(client.flush(), { code: 'STORE_FAILED' });
  isBroken = false;
  await client.track(answerOf('store'));
  await client.flush();
  assert.deepEqual(await working.load(), []);
  assert.equal((await countedItems('store')).length, 2);
});

test('An error thrown in a callback is an uncaught exception, and the queue continues', async (t) => {
  const program = `
    import { Skilltrace } from '${new URL('../../src/client/index.js', import.meta.url)}';
    process.once('uncaughtException', ({ message }) => console.log(message));
    const onUndelivered = () => { throw new Error('a fault of the platform'); };
    const client = new Skilltrace({ baseUrl: '${service.baseUrl}', apiKey: '${service.key}', onUndelivered });
    await client.track({ user_id: 'callback', skill_id: 'algebra', is_correct: 1 });
    await client.track({ user_id: 'callback', skill_id: 'algebra', is_correct: true, item_id: 'after' });
    await client.flush();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  assert.equal(await text(child.stdout), 'a fault of the platform\n');
  assert.deepEqual(await countedItems('callback'), ['after']);
});
