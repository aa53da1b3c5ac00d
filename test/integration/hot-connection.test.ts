/** What is written as one bundle over a connection that ioredis opened, and what comes back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { type HotConnection, openHotConnection } from '../../src/store/redis/connection/hot-connection.js';
import { type CommandEncoder, createCommandEncoder } from '../../src/store/redis/wire/command-encoder.js';
import { parseTransaction, type Reply } from '../../src/store/redis/wire/replies.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { startBareRedis } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

exitAfterTests();

const server = await startBareRedis({ after });
const [client, other] = await Promise.all([connect(), connect()]);
const hot = openHot(5000);
await hot.waitUntilReady();

function openHot(timeoutMs: number): HotConnection {
  const opened = openHotConnection(server.url, 0, timeoutMs);
  after(opened.close);
  return opened;
}

async function connect(): Promise<Redis> {
  const connected = connectRedis(server.url) as Redis;
  connected.on('error', () => undefined);
  after(() => connected.disconnect());
  await waitUntilReady(connected, 5000);
  return connected;
}

type Word = string | Buffer;
type Command = readonly [name: string, ...words: Word[]];

function writeCommands(request: CommandEncoder, commands: readonly Command[]): CommandEncoder {
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
  return over.send(writeCommands(createCommandEncoder(64), commands));
}

/** A writer that begins with so many bytes: the one before it takes the buffer that waits to be used again. */
function withoutSpare(size: number): CommandEncoder {
  createCommandEncoder(0);
  return createCommandEncoder(size);
}

const bytesOf = (word: Word): Buffer => Buffer.from(word as string);
const ok = Buffer.from('OK');
const errorOf = (reply: Reply | undefined): string => (reply instanceof Error ? reply.message : 'no error');
const moment = { timeout: 20_000 };

/** Lengths around those where a length takes one more digit. */
const lengths = [0, 1, 9, 10, 33, 34, 99, 100, 333, 334, 999, 1000, 3333, 3334, 9999, 10_000, 70_000];
const length = fc.oneof(fc.constantFrom(...lengths), fc.nat(300));
const character = fc.constantFrom('a', '\0', '\r\n', '$1\r\n', 'é', '€', '🙂', '\ud800');
const text = fc.tuple(character, length).map(([one, times]) => one.repeat(times));
const mixedText = fc.array(text, { maxLength: 3 }).map((parts) => parts.join(''));
const bytes = fc.tuple(fc.nat(255), length).map(([byte, times]) => Buffer.alloc(times, byte));
const words = fc.array(fc.oneof(text, mixedText, bytes), { minLength: 1, maxLength: 12 });

test('whatever words are written, Redis reads and gives back as they were', moment, async () => {
  const size = fc.constantFrom(0, 1, 16, 1000, 100_000);
  await assertAsync(
    fc.asyncProperty(words, size, fc.boolean(), async (list, size, isFresh) => {
      const request = isFresh ? withoutSpare(size) : createCommandEncoder(size);
      const keys = list.map((_, i) => `word ${i}`);
      writeCommands(request, [
        ...list.map((word): Command => ['ECHO', word]),
        ...list.map((word, i): Command => ['SET', keys[i] as string, word]),
        ['MGET', ...keys],
      ]);
      assert.equal(request.commandCount(), 2 * list.length + 1);
      const expected = list.map(bytesOf);
      const replies = await hot.send(request);
      assert.deepEqual(replies, [...expected, ...list.map(() => ok), expected]);
    }),
    { numRuns: 150 },
  );
});

test('texts and bytes of every length up to 1,100', moment, async () => {
  const list = Array.from({ length: 1100 }, (_, i) => [
    'a'.repeat(i),
    'é'.repeat(i),
    '€'.repeat(i),
    Buffer.alloc(i, 0xff),
  ]).flat();
  const request = writeCommands(
    withoutSpare(1),
    list.map((word) => ['ECHO', word]),
  );
  assert.deepEqual(await hot.send(request), list.map(bytesOf));
});

test('numbers, absent values and lists in lists come as ioredis reads them', moment, async () => {
  await client.del('hash', 'stream');
  const [absent, count, values, , entries] = await send([
    ['GET', 'absent'],
    ['HSET', 'hash', 'a', '1', 'b', '2'],
    ['HMGET', 'hash', 'a', 'absent', 'b'],
    ['XADD', 'stream', '1-1', 'r', 'row'],
    ['XRANGE', 'stream', '-', '+'],
  ]);
  assert.deepEqual([absent, count], [null, 2]);
  assert.deepEqual(values, [Buffer.from('1'), null, Buffer.from('2')]);
  assert.deepEqual(entries, [[Buffer.from('1-1'), [Buffer.from('r'), Buffer.from('row')]]]);
});

test('bundles are carried out and answered in the order of sending', moment, async () => {
  const counts = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 20 });
  await assertAsync(
    fc.asyncProperty(counts, async (list) => {
      await client.set('order', 0);
      const replies = await Promise.all(
        list.map((count) => send(Array.from({ length: count }, () => ['INCR', 'order']))),
      );
      const total = list.reduce((sum, count) => sum + count, 0);
      assert.deepEqual(
        replies.flat(),
        Array.from({ length: total }, (_, i) => i + 1),
      );
    }),
    { numRuns: 50 },
  );
});

test('an error reply stands at its place, and the others are there', moment, async () => {
  await client.set('text', 'x');
  const [first, wrongType, second, unknown, third] = await send([
    ['ECHO', 'first'],
    ['LPUSH', 'text', 'y'],
    ['ECHO', 'second'],
    ['NOSUCHCOMMAND'],
    ['ECHO', 'third'],
  ]);
  assert.deepEqual([first, second, third], ['first', 'second', 'third'].map(bytesOf));
  assert.match(errorOf(wrongType), /^WRONGTYPE/);
  assert.match(errorOf(unknown), /^ERR unknown command/);
  assert.equal((wrongType as Error).name, 'ReplyError');
});

test(
  'a bundle whose connection is lost before the last reply fails, and the next connection serves again',
  moment,
  async () => {
    const blocked = [send([['PING'], ['BLPOP', 'nothing', '0'], ['PING']]), send([['PING']])];
    const outcomes = Promise.allSettled(blocked);
    const id = /id=(\d+)/.exec(await whenBlocked())?.[1] as string;
    await other.client('KILL', 'ID', id);
    assert.deepEqual(
      (await outcomes).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    await assert.rejects(
      hot.send(writeCommands(createCommandEncoder(64), [['PING']])),
      /Connection is closed/,
    );
    assert.deepEqual(await send([['ECHO', 'again']]), [Buffer.from('again')]);
  },
);

/** The line about the connection that waits in BLPOP. */
async function whenBlocked(): Promise<string> {
  let line: string | undefined;
  await waitFor('the blocked connection', async () => {
    line = String(await other.client('LIST')).match(/^.*cmd=blpop.*$/m)?.[0];
    return line !== undefined;
  });
  return line as string;
}

test('a killed Redis fails what waits for it; after its return, bundles are served', moment, async () => {
  const outcome = assert.rejects(send([['PING'], ['BLPOP', 'nothing', '0']]));
  await whenBlocked();
  await server.kill();
  await outcome;
  await assert.rejects(hot.send(writeCommands(createCommandEncoder(64), [['PING']])), /Connection is closed/);
  await server.start();
  await Promise.all([client, other].map((connected) => waitUntilReady(connected, 5000)));
  assert.deepEqual(await send([['ECHO', 'again']]), [Buffer.from('again')]);
});

test(
  'a bundle that takes too long fails with all behind it, and the connection is another one then',
  moment,
  async () => {
    const hasty = openHot(1500);
    await client.set('late', 0);
    const before = await send([['ECHO', 'before']], hasty).then(hasty.currentSocket);
    server.signal('SIGSTOP');
    const late = send([['INCR', 'late'], ['NOSUCHCOMMAND'], ['ECHO', 'late']], hasty);
    const behind = send([['ECHO', 'behind']], hasty);
    try {
      await assert.rejects(late, /Command timed out/);
      await assert.rejects(behind, /Command timed out/);
    } finally {
      server.signal('SIGCONT');
    }
    assert.deepEqual(await send([['ECHO', 'after']], hasty), [Buffer.from('after')]);
    assert.notEqual(hasty.currentSocket(), before);
  },
);

/** Bundles that are told apart by every byte, of a size that is kept for the next. */
const largeBundle = (i: number): readonly Command[] => [
  ['SET', `large ${i}`, Buffer.alloc(400_000, i)],
  ['ECHO', String.fromCharCode(97 + (i % 26)).repeat(20_000)],
];

test('a buffer is not used again before its bytes are sent', moment, async () => {
  const numbers = Array.from({ length: 60 }, (_, i) => i);
  server.signal('SIGSTOP');
  const sent: Promise<Reply[]>[] = [];
  try {
    // The first ones fit into the socket and give their buffers back, the others wait in this process.
    for (const i of numbers) {
      sent.push(hot.send(writeCommands(createCommandEncoder(64), largeBundle(i))));
      if (i % 3 === 0) await nextTurn();
    }
    const { writableLength } = hot.currentSocket() as Redis['stream'];
    assert.ok((writableLength ?? 0) > 10_000_000, 'most is not sent yet');
  } finally {
    server.signal('SIGCONT');
  }
  const replies = await Promise.all(sent);
  const stored = await Promise.all(numbers.map((i) => client.getBuffer(`large ${i}`)));
  for (const i of numbers) {
    const [[, key, value], [, echoed]] = largeBundle(i) as [Command, Command];
    assert.deepEqual(replies[i], [ok, bytesOf(echoed as string)]);
    assert.ok(stored[i]?.equals(value as Buffer), `${key} is what was sent`);
  }
});

test('a released buffer is used by the next bundle', moment, () => {
  // More than Node hands out of a buffer that others share.
  const size = 100_000;
  const request = withoutSpare(size);
  const { buffer } = request.toBuffer();
  request.release();
  const isUsed = () => createCommandEncoder(size).toBuffer().buffer === buffer;
  assert.deepEqual([isUsed(), isUsed()], [true, false]);
});

const transaction = async (...commands: Command[]): Promise<boolean> =>
  parseTransaction(commands.length, await send([['MULTI'], ...commands, ['EXEC']])).isCommitted;

test('a transaction is carried out', moment, async () => {
  await client.del('list');
  assert.equal(await transaction(['RPUSH', 'list', 'a'], ['RPUSH', 'list', 'b']), true);
  assert.equal(await client.llen('list'), 2);
});

test('a command that is refused refuses its transaction, with its own error', moment, async () => {
  const refused = transaction(['SET', 'refused', 'x'], ['NOSUCHCOMMAND'], ['SET', 'refused', 'y']);
  await assert.rejects(refused, /^ReplyError: ERR unknown command/);
  assert.equal(await client.exists('refused'), 0);
});

test('a command that fails in a transaction fails it', moment, async () => {
  await client.set('text', 'x');
  await assert.rejects(transaction(['LPUSH', 'text', 'y'], ['PING']), /^ReplyError: WRONGTYPE/);
});

test('a transaction is refused where something watched was written', moment, async () => {
  await send([['WATCH', 'watched']]);
  await other.incr('watched');
  assert.equal(await transaction(['SET', 'watched', 'x'], ['PING']), false);
  assert.notEqual(await client.get('watched'), 'x');
});
