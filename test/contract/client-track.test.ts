/** The client's queue: batches, order, refusals, what is kept and what is told. */
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
import { fileStore } from '../support/client/file-store.js';
import { type Front, startFront } from '../support/servers/front.js';
import { type Scoped, sharedService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const direct = new Skilltrace({ baseUrl: service.baseUrl, apiKey: service.key });
const answerOf = (user_id: string, change: Partial<Answer> = {}): Answer => ({
  user_id,
  skill_id: 'algebra',
  is_correct: true,
  ...change,
});

/** A client behind a proxy, and what it tells. */
async function stage(t: Scoped, options: Partial<SkilltraceOptions> = {}) {
  const front = await startFront(t, service);
  const undelivered: string[] = [];
  const stopped: string[] = [];
  const client = new Skilltrace({
    baseUrl: front.baseUrl,
    retry: { firstDelayMs: 5, longestDelayMs: 20 },
    onUndelivered: ({ item_id }, { code }) => undelivered.push(`${item_id} ${code}`),
    onStopped: ({ code }) => stopped.push(code),
    ...options,
    queue: { lingerMs: 10, ...options.queue },
  });
  t.after(() => client.close({ timeoutMs: 0 }));
  return { front, client, undelivered, stopped };
}

const eventsOf = (body: string): Answer[] => JSON.parse(body).events ?? [JSON.parse(body)];
const sizes = ({ passed }: Front): number[] => passed.map(({ body }) => eventsOf(body).length);

/** Items of the learner's counted answers, in the order in which they were counted. */
async function countedItems(user: string): Promise<(string | null)[]> {
  const items: (string | null)[] = [];
  for await (const { item_id } of direct.allAttempts(user)) items.unshift(item_id);
  return items;
}

const names = (count: number, prefix = 'i'): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test('answers share requests by size and by time, one of each learner in a request', async (t) => {
  const { client, front } = await stage(t, { queue: { batchAnswers: 3, requests: 1, lingerMs: 200 } });
  const ids = await Promise.all(names(4, 'batch-').map((user) => client.track(answerOf(user))));
  assert.equal(new Set(ids).size, 4);
  await client.track(answerOf('batch-0'));
  await waitFor('an empty queue', () => client.queued === 0);
  assert.equal(sizes(front)[0], 3, 'a full batch goes at once');
  assert.equal(
    sizes(front).reduce((sum, size) => sum + size),
    5,
  );
  for (const { body } of front.passed) {
    const users = eventsOf(body).map(({ user_id }) => user_id);
    assert.equal(new Set(users).size, users.length);
  }
});

test('the order of a learner holds while requests fail in every way', async (t) => {
  const { client, front } = await stage(t, { timeoutMs: 3000 });
  const error = JSON.stringify({ error: { code: 'INTERNAL', message: 'a defect' } });
  const ways = [
    'lost',
    { status: 500, body: error },
    { status: 502, body: 'bad gateway' },
    null,
    null,
  ] as const;
  front.decide = (_, i) => ways[i % ways.length] ?? null;
  const users = names(5, 'order-');
  for (const item_id of names(8)) for (const user of users) await client.track(answerOf(user, { item_id }));
  await client.flush();
  for (const user of users) assert.deepEqual(await countedItems(user), names(8), user);
});

test('of a batch each answer has its own fate, and those behind a refused one go on', async (t) => {
  const { client, undelivered } = await stage(t);
  const times = ['2020-01-01T00:00:00Z', 'yesterday', undefined, '2020-01-01T00:00:00Z'];
  for (const [i, occurred_at] of times.entries())
    await client.track(answerOf(`fate-${i}`, { item_id: `i${i}`, occurred_at }));
  await client.track(answerOf('fate-1', { item_id: 'behind' }));
  await client.flush();
  assert.deepEqual(undelivered, ['i1 INVALID_REQUEST']);
  assert.deepEqual(await countedItems('fate-1'), ['behind']);
  assert.deepEqual(await countedItems('fate-3'), ['i3']);
});

test('of a batch that is refused as a whole each answer is told with what is wrong with it', async (t) => {
  const told: string[] = [];
  const { client, front } = await stage(t, {
    onUndelivered: ({ item_id }, { message, details }) =>
      told.push(`${item_id} ${message} ${details.length}`),
  });
  await direct.trackAnswer(answerOf('all-1', { event_id: 'used' }));
  await client.track(answerOf('all-0', { item_id: 'a', confidence_score: 9 }));
  await client.track(answerOf('all-1', { item_id: 'b', event_id: 'used' }));
  await client.flush();
  assert.deepEqual(sizes(front), [2]);
  assert.equal(told.length, 2);
  assert.match(told[0] ?? '', /^a must be <= 5 1$/);
  assert.match(told[1] ?? '', /^b This event_id was used for a different event/);
});

test('a batch that is too large for what stands in between is halved, and the next are smaller', async (t) => {
  const { client, front } = await stage(t, { queue: { requests: 1, batchAnswers: 32 } });
  front.decide = ({ body }) => (body.length > 2000 ? { status: 413, body: '<html>' } : null);
  const users = names(32, 'large-');
  for (const user of users) await client.track(answerOf(user));
  await client.flush();
  const before = front.passed.length;
  for (const user of users) await client.track(answerOf(user));
  await client.flush();
  const later = front.passed.slice(before);
  assert.ok(
    later.every(({ body }) => body.length <= 2000),
    `${later.map(({ body }) => body.length)}`,
  );
  assert.equal((await countedItems('large-31')).length, 2);
});

test('a full queue refuses, and takes answers again when there is room', async (t) => {
  const { client, front } = await stage(t, { queue: { answers: 3 } });
  front.decide = () => ({ status: 503 });
  for (const user of names(3, 'full-')) await client.track(answerOf(user));
  await assert.rejects(client.track(answerOf('full-3')), { code: 'QUEUE_FULL' });
  front.decide = () => null;
  await client.flush();
  await client.track(answerOf('full-3'));
  await client.flush();
  assert.equal((await countedItems('full-3')).length, 1);
});

test('after 429 the whole queue waits as it was told', async (t) => {
  const { client, front } = await stage(t, { queue: { batchAnswers: 1, requests: 1 } });
  front.decide = (_, i) => (i === 0 ? { status: 429, headers: { 'Retry-After': '1' } } : null);
  await client.track(answerOf('wait-0'));
  await waitFor('the first request', () => front.passed.length === 1);
  for (const user of names(5, 'wait-')) await client.track(answerOf(user));
  await client.flush();
  const [first, second] = front.passed;
  assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990, `${first?.at} ${second?.at}`);
  assert.equal((await countedItems('wait-0')).length, 2);
});

test('a used up quota is not run against', async (t) => {
  const { client, front } = await stage(t);
  front.decide = ({ path }) =>
    path.endsWith('answer')
      ? { status: 200, headers: { RateLimit: '"default";r=0;t=1' }, body: '{"data":{}}' }
      : null;
  await client.track(answerOf('quota-0'));
  await waitFor('the answer', () => client.queued === 0);
  await client.track(answerOf('quota-1'));
  await client.flush();
  const [first, second] = front.passed;
  assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990);
});

test('a key that is refused stops the queue, which keeps all it has and goes on with the next flush', async (t) => {
  let apiKey = 'wrong';
  const { client, front, stopped, undelivered } = await stage(t, { apiKey: async () => apiKey });
  for (const item_id of names(3)) await client.track(answerOf('key', { item_id }));
  await assert.rejects(client.flush(), { code: 'UNAUTHORIZED' });
  const tries = front.passed.length;
  await client.track(answerOf('key-other'));
  assert.deepEqual([client.queued, stopped, undelivered, tries], [4, ['UNAUTHORIZED'], [], 1]);
  apiKey = service.key;
  await client.flush();
  assert.deepEqual(await countedItems('key'), names(3));
});

test('a flush ends with its time or its signal and leaves the queue as it is', async (t) => {
  const { client, front } = await stage(t);
  front.decide = () => ({ status: 503 });
  await client.track(answerOf('flush'));
  await assert.rejects(client.flush({ timeoutMs: 20 }), { code: 'TIMEOUT' });
  await assert.rejects(client.flush({ signal: AbortSignal.abort() }), { code: 'ABORTED' });
  front.decide = () => null;
  await client.flush();
  assert.equal((await countedItems('flush')).length, 1);
});

test('the end of its block flushes a client; what cannot be delivered then is told', async (t) => {
  const { front, undelivered } = await stage(t);
  const options: SkilltraceOptions = {
    baseUrl: front.baseUrl,
    onUndelivered: ({ item_id }, { code }) => undelivered.push(`${item_id} ${code}`),
  };
  {
    await using client = new Skilltrace(options);
    await client.track(answerOf('block', { item_id: 'in time' }));
  }
  assert.deepEqual(await countedItems('block'), ['in time']);
  front.decide = () => 'silence';
  const client = new Skilltrace(options);
  await client.track(answerOf('block', { item_id: 'too late' }));
  assert.equal(await client.close({ timeoutMs: 20 }), 0);
  assert.deepEqual(undelivered, ['too late CLOSED']);
  await assert.rejects(client.track(answerOf('block')), { code: 'CLOSED' });
});

test('what a killed process had queued is delivered once by the next, in its order', async (t) => {
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
  const { client, front } = await stage(t, { store: fileStore(file) });
  await client.track(answerOf('killed', { item_id: 'item-20' }));
  front.decide = (_, i) => (i % 3 === 0 ? 'lost' : null);
  await client.flush();
  assert.deepEqual(await countedItems('killed'), names(21, 'item-'));
  assert.deepEqual(await fileStore(file).load(), []);
});

test('what is left at the end stays in the store; what is too old there is told and not sent', async (t) => {
  const file = join(await tempDir(t), 'unsent');
  const store = fileStore(file);
  const { client, front } = await stage(t, { store });
  front.decide = () => ({ status: 503 });
  await client.track(answerOf('left', { item_id: 'kept' }));
  assert.equal(await client.close({ timeoutMs: 20 }), 1);
  const [kept] = await store.load();
  const old = { answer: { ...kept?.answer, event_id: 'old', item_id: 'old' }, queuedAt: 0 } as StoredAnswer;
  await store.add([old]);
  const next = await stage(t, { store });
  await next.client.flush();
  assert.deepEqual(next.undelivered, ['old EXPIRED']);
  assert.deepEqual(await countedItems('left'), ['kept']);
  assert.deepEqual(await store.load(), []);
});

test('a store that fails refuses answers, and is tried again', async (t) => {
  const working = fileStore(join(await tempDir(t), 'unsent'));
  let isBroken = true;
  const broken = async (): Promise<never> => {
    throw new Error('disk full');
  };
  const store: AnswerStore = {
    load: () => working.load(),
    add: (answers) => (isBroken ? broken() : working.add(answers)),
    remove: (answers) => (isBroken ? broken() : working.remove(answers)),
  };
  const { client } = await stage(t, { store });
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

test('a callback that throws is seen and stops nothing', async (t) => {
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
