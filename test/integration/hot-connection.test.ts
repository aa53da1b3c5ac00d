/** The connection that sends the commands of answers past ioredis. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { indices } from '../../src/lists.js';
import { openHotConnection } from '../../src/store/redis/connection/hot-connection.js';
import { type CommandEncoder, createCommandEncoder } from '../../src/store/redis/wire/command-encoder.js';
import { parseTransaction, type Reply } from '../../src/store/redis/wire/replies.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { roundsOf } from '../support/runner/long-form.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const server = await startBareRedis({ after });
const [client, other] = await Promise.all([redisOf({ after }, server.url), redisOf({ after }, server.url)]);
const hot = await openHot(5000);

async function openHot(timeoutMs: number) {
  const opened = openHotConnection(server.url, 0, timeoutMs);
  after(opened.close);
  await opened.waitUntilReady();
  return opened;
}

type Word = string | Buffer;
type Command = readonly [name: string, ...words: Word[]];

function encode(commands: readonly Command[], request = createCommandEncoder(64)): CommandEncoder {
  for (const [name, ...words] of commands) {
    request.command(1 + words.length, name);
    for (const word of words) {
      if (typeof word === 'string') request.text(word);
      else request.writeBytes(word);
    }
  }
  return request;
}

async function send(commands: readonly Command[], over = hot): Promise<Reply[]> {
  await over.waitUntilReady();
  return over.send(encode(commands));
}

/** An encoder with a new buffer: the first call takes the released one. */
function createFreshEncoder(size: number): CommandEncoder {
  createCommandEncoder(0);
  return createCommandEncoder(size);
}

const toBytes = (word: Word): Buffer => Buffer.from(word as string);
const ok = Buffer.from('OK');
const messageOf = (reply: Reply | undefined): string => (reply instanceof Error ? reply.message : 'no error');

/** Lengths next to those where the number of digits changes. */
const lengths = [0, 1, 9, 10, 33, 34, 99, 100, 333, 334, 999, 1000, 3333, 3334, 9999, 10_000, 70_000];
const length = fc.oneof(fc.constantFrom(...lengths), fc.nat(300));
const character = fc.constantFrom('a', '\0', '\r\n', '$1\r\n', 'é', '€', '🙂', '\ud800');
const text = fc.tuple(character, length).map(([one, times]) => one.repeat(times));
const mixedText = fc.array(text, { maxLength: 3 }).map((parts) => parts.join(''));
const bytes = fc.tuple(fc.nat(255), length).map(([byte, times]) => Buffer.alloc(times, byte));
const anyWords = fc.array(fc.oneof(text, mixedText, bytes), { minLength: 1, maxLength: 12 });

test('The command encoder writes every text and byte so that Redis reads it unchanged', async () => {
  const size = fc.constantFrom(0, 1, 16, 1000, 100_000);
  await assertAsync(
    fc.asyncProperty(anyWords, size, fc.boolean(), async (words, size, isFresh) => {
      const request = isFresh ? createFreshEncoder(size) : createCommandEncoder(size);
      const keys = words.map((_, i) => `word ${i}`);
      const sets = words.map((word, i): Command => ['SET', `word ${i}`, word]);
      encode([...words.map((word): Command => ['ECHO', word]), ...sets, ['MGET', ...keys]], request);
      assert.equal(request.commandCount(), 2 * words.length + 1);
      const expected = words.map(toBytes);
      assert.deepEqual(await hot.send(request), [...expected, ...words.map(() => ok), expected]);
    }),
    { numRuns: roundsOf(50, 300) },
  );
});

test('The command encoder writes texts and bytes of every length up to 1,100', async () => {
  const words = indices(1100).flatMap((i): Word[] => ['a'.repeat(i), '€'.repeat(i), Buffer.alloc(i, 0xff)]);
  const echoes = words.map((word): Command => ['ECHO', word]);
  assert.deepEqual(await hot.send(encode(echoes, createFreshEncoder(1))), words.map(toBytes));
});

test('The hot connection returns numbers, null, nested lists, and errors at their positions', async () => {
  await client.set('text', 'x');
  const [missing, count, values, wrongType, , entries, unknown, last] = await send([
    ['GET', 'missing'],
    ['HSET', 'hash', 'a', '1', 'b', '2'],
    ['HMGET', 'hash', 'a', 'missing', 'b'],
    ['LPUSH', 'text', 'y'],
    ['XADD', 'stream', '1-1', 'r', 'row'],
    ['XRANGE', 'stream', '-', '+'],
    ['NOSUCHCOMMAND'],
    ['ECHO', 'last'],
  ]);
  assert.deepEqual([missing, count], [null, 2]);
  assert.deepEqual(values, [Buffer.from('1'), null, Buffer.from('2')]);
  assert.deepEqual(entries, [[Buffer.from('1-1'), [Buffer.from('r'), Buffer.from('row')]]]);
  assert.deepEqual(last, Buffer.from('last'));
  assert.match(messageOf(wrongType), /^WRONGTYPE/);
  assert.match(messageOf(unknown), /^ERR unknown command/);
  assert.equal((wrongType as Error).name, 'ReplyError');
});

test('The hot connection executes and answers concurrent requests in the order of sending', async () => {
  await client.set('order', 0);
  const requests = indices(60).map((i) => indices(1 + (i % 30)).map((): Command => ['INCR', 'order']));
  const replies = (await Promise.all(requests.map((commands) => send(commands)))).flat();
  const expected = indices(requests.flat().length).map((i) => i + 1);
  assert.deepEqual(replies, expected);
});

/** @returns the id of the connection that waits in BLPOP */
async function waitUntilBlocked(): Promise<string> {
  let id: string | undefined;
  await waitFor('the blocked connection', async () => {
    id = String(await other.client('LIST')).match(/^id=(\d+) .*cmd=blpop.*$/m)?.[1];
    return id !== undefined;
  });
  return id as string;
}

test('The hot connection rejects all requests in flight when it is lost, and reconnects', async () => {
  const losses = [
    async () => void (await other.client('KILL', 'ID', await waitUntilBlocked())),
    async () => {
      await waitUntilBlocked();
      await server.kill();
    },
  ];
  for (const lose of losses) {
    const requests = [send([['PING'], ['BLPOP', 'empty', '0'], ['PING']]), send([['PING']])];
    const outcomes = Promise.allSettled(requests);
    await lose();
    const statuses = (await outcomes).map(({ status }) => status);
    assert.deepEqual(statuses, ['rejected', 'rejected']);
    await assert.rejects(hot.send(encode([['PING']])), /Connection is closed/);
    if (lose === losses[1]) await server.start();
    assert.deepEqual(await send([['ECHO', 'again']]), [Buffer.from('again')]);
  }
  await waitFor('the clients of the test', () => client.status === 'ready' && other.status === 'ready');
});

test('The hot connection times out a slow request with all later ones, and reconnects', async () => {
  const impatient = await openHot(1500);
  const before = impatient.currentSocket();
  server.signal('SIGSTOP');
  const requests = ['late', 'later'].map((text) => send([['PING'], ['ECHO', text]], impatient));
  try {
    for (const request of requests) await assert.rejects(request, /Command timed out/);
  } finally {
    server.signal('SIGCONT');
  }
  assert.deepEqual(await send([['ECHO', 'after']], impatient), [Buffer.from('after')]);
  assert.notEqual(impatient.currentSocket(), before);
});

/** Every byte depends on the number. The buffer is small enough to be used again. */
const largeRequest = (i: number): readonly Command[] => [
  ['SET', `large ${i}`, Buffer.alloc(400_000, i)],
  ['ECHO', String.fromCharCode(97 + (i % 26)).repeat(20_000)],
];

test('The hot connection does not reuse a buffer before its bytes are sent', async () => {
  const numbers = indices(40);
  server.signal('SIGSTOP');
  const sent: Promise<Reply[]>[] = [];
  try {
    // The first requests fit into the socket and release their buffers. The others wait in this process.
    for (const i of numbers) {
      sent.push(hot.send(encode(largeRequest(i))));
      if (i % 3 === 0) await nextTurn();
    }
    const { writableLength } = hot.currentSocket() as Socket;
    assert.ok(writableLength > 7_000_000, 'most bytes are sent already');
  } finally {
    server.signal('SIGCONT');
  }
  const replies = await Promise.all(sent);
  const stored = await Promise.all(numbers.map((i) => client.getBuffer(`large ${i}`)));
  for (const i of numbers) {
    const [[, key, value], [, echoed]] = largeRequest(i) as [Command, Command];
    assert.deepEqual(replies[i], [ok, toBytes(echoed as string)]);
    assert.ok(stored[i]?.equals(value as Buffer), `${key} has other bytes`);
  }
});

test('The command encoder reuses a released buffer once', () => {
  // Larger than the pool from which Node hands out small buffers.
  const size = 100_000;
  const request = createFreshEncoder(size);
  const { buffer } = request.toBuffer();
  request.release();
  const isReused = () => createCommandEncoder(size).toBuffer().buffer === buffer;
  assert.deepEqual([isReused(), isReused()], [true, false]);
});

const transaction = async (...commands: Command[]): Promise<boolean> =>
  parseTransaction(commands.length, await send([['MULTI'], ...commands, ['EXEC']])).isCommitted;

test('parseTransaction distinguishes a commit from a failed WATCH, and throws command errors', async () => {
  assert.equal(await transaction(['RPUSH', 'list', 'a'], ['RPUSH', 'list', 'b']), true);
  assert.equal(await client.llen('list'), 2);
  const unknown = transaction(['SET', 'rejected', 'x'], ['NOSUCHCOMMAND'], ['SET', 'rejected', 'y']);
  await assert.rejects(unknown, /^ReplyError: ERR unknown command/);
  assert.equal(await client.exists('rejected'), 0);
  await client.set('text', 'x');
  await assert.rejects(transaction(['LPUSH', 'text', 'y'], ['PING']), /^ReplyError: WRONGTYPE/);
  await send([['WATCH', 'watched']]);
  await other.incr('watched');
  assert.equal(await transaction(['SET', 'watched', 'x'], ['PING']), false);
  assert.equal(await client.get('watched'), '1');
});
