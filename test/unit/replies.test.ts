/** Replies of Redis are read whole, however the socket cuts them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createReplyParser,
  createReplySequence,
  parseTransaction,
  type Reply,
} from '../../src/store/redis/wire/replies.js';
import { fc } from '../support/builders/properties.js';

const bulk = (value: Buffer | null): Buffer =>
  value === null
    ? Buffer.from('$-1\r\n')
    : Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')]);

/** As Redis writes it. */
function written(reply: Reply): Buffer {
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`);
  if (reply instanceof Error) return Buffer.from(`-${reply.message}\r\n`);
  if (Array.isArray(reply))
    return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(written)]);
  return bulk(reply);
}

/** @param sizes of the pieces, over and over; none: all at once */
function read(bytes: Buffer, sizes: readonly number[]): Reply[] {
  const reader = createReplyParser();
  const found: Reply[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const end = at + (sizes[i % Math.max(1, sizes.length)] ?? bytes.length);
    reader.add(Buffer.from(bytes.subarray(at, end)));
    at = end;
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) found.push(reply);
  }
  return found;
}

const told = [
  'OOM',
  'MOVED 3999 127.0.0.1:6381',
  'LOADING Redis is loading',
  'READONLY',
  'NOAUTH',
  'EXECABORT',
];
const replies: readonly Reply[] = [
  Buffer.from('OK'),
  [Buffer.alloc(116, 0x0d), null, Buffer.from('\r\n$-1\r\n'), Buffer.alloc(0)],
  -1,
  1_700_000_000_000,
  null,
  [],
  [[1, [Buffer.from('é')]], 0, new Error('WRONGTYPE of one command')],
  ...told.map((message) => new Error(message)),
  Buffer.alloc(1000, 7),
];
const message = (reply: Reply): unknown => {
  if (reply instanceof Error) return `${reply.name} ${reply.message}`;
  return Array.isArray(reply) ? reply.map(message) : reply;
};
const expected = (list: readonly Reply[]): unknown[] =>
  list.map((reply) => JSON.parse(JSON.stringify(message(reply)).replaceAll('"Error ', '"ReplyError ')));
const plain = (list: readonly Reply[]): unknown[] => JSON.parse(JSON.stringify(list.map(message)));

test('replies that are cut in two at any byte', () => {
  const bytes = Buffer.concat(replies.map(written));
  for (let cut = 1; cut < bytes.length; cut++)
    assert.deepEqual(plain(read(bytes, [cut, bytes.length])), expected(replies), `cut at ${cut}`);
});

test('replies that come byte by byte, and all at once', () => {
  const bytes = Buffer.concat(replies.map(written));
  assert.deepEqual(plain(read(bytes, [1])), expected(replies));
  assert.deepEqual(plain(read(bytes, [])), expected(replies));
});

test('any replies, cut anywhere', () => {
  const value = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const leaf = fc.oneof(value, fc.constant(null), fc.integer(), fc.maxSafeInteger());
  const { list } = fc.letrec<{ list: Reply }>((tie) => ({
    list: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('list'), { maxLength: 6 })),
  }));
  const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(list, { maxLength: 8 }), sizes, (made, cuts) => {
      assert.deepEqual(plain(read(Buffer.concat(made.map(written)), cuts)), plain(made));
    }),
    { numRuns: 300 },
  );
});

test('a simple string is its text, an absent list is null', () => {
  assert.deepEqual(read(Buffer.from('+QUEUED\r\n*-1\r\n'), []), [Buffer.from('QUEUED'), null]);
});

test('what is no reply is refused', () => {
  assert.throws(() => read(Buffer.from('HTTP/1.1 400\r\n'), []), /no reply: byte 72/);
});

test('a transaction is done only where every reply is in its place', () => {
  const [ok, queued] = [Buffer.from('OK'), Buffer.from('QUEUED')];
  const done = (list: readonly Reply[], commands = 2) => parseTransaction(commands, list);
  assert.deepEqual(done([ok, queued, queued, [1, 0]]), { isCommitted: true, replicas: 0 });
  assert.deepEqual(done([ok, queued, queued, [1, 0], 2]), { isCommitted: true, replicas: 2 });
  assert.deepEqual(done([ok, queued, queued, null, 2]), { isCommitted: false, replicas: 0 });
  assert.deepEqual(done([ok, queued, queued, [1, 0], new Error('UNBLOCKED')]), {
    isCommitted: true,
    replicas: 0,
  });
  // One place too late: a reply came that nobody had asked for.
  assert.throws(() => done([Buffer.from('# Server'), ok, queued, queued]), /something else/);
  assert.throws(() => done([Buffer.from('# Server'), ok, queued, queued, null]), /something else/);
  assert.throws(() => done([ok, queued, queued, [1]]), /something else/);
  assert.throws(() => done([ok, queued, queued, [1, new Error('WRONGTYPE')]]), /WRONGTYPE/);
  assert.throws(() => done([ok, new Error('OOM'), queued, new Error('EXECABORT')]), /OOM/);
});

test('a list that is none is refused', () => {
  const replies = createReplySequence([Buffer.from('O'), [null]]);
  assert.throws(replies.list, /something else/);
  assert.deepEqual(replies.list(), [null]);
});
