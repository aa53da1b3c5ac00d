/** The parser of Redis replies, and the outcome of transactions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapRedisErrors } from '../../src/store/redis/connection/client.js';
import {
  createReplyParser,
  createReplySequence,
  parseTransaction,
  type Reply,
} from '../../src/store/redis/wire/replies.js';
import { fc, forRuns } from '../support/builders/properties.js';
import { roundsOf } from '../support/runner/long-form.js';

/** The bytes of a reply (RESP2). */
function encode(reply: Reply): Buffer {
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`);
  if (reply instanceof Error) return Buffer.from(`-${reply.message}\r\n`);
  if (reply === null) return Buffer.from('$-1\r\n');
  if (Array.isArray(reply)) return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(encode)]);
  const bytes = reply as Buffer;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** @param sizes of the pieces, repeated; empty: one piece */
function parse(bytes: Buffer, sizes: readonly number[]): Reply[] {
  const parser = createReplyParser();
  const replies: Reply[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const end = at + (sizes[i % Math.max(1, sizes.length)] ?? bytes.length);
    parser.add(Buffer.from(bytes.subarray(at, end)));
    at = end;
    for (let reply = parser.next(); reply !== undefined; reply = parser.next()) replies.push(reply);
  }
  return replies;
}

const errors = ['OOM', 'MOVED 3999 127.0.0.1:6381', 'LOADING Redis is loading', 'READONLY', 'EXECABORT'];
const replies: readonly Reply[] = [
  Buffer.from('OK'),
  [Buffer.alloc(116, 0x0d), null, Buffer.from('\r\n$-1\r\n'), Buffer.alloc(0)],
  -1,
  1_700_000_000_000,
  null,
  [],
  [[1, [Buffer.from('é')]], 0, new Error('WRONGTYPE of one command')],
  ...errors.map((message) => new Error(message)),
  Buffer.alloc(1000, 7),
];
/** With errors as text, which is comparable. */
const toComparable = (reply: Reply): unknown => {
  if (reply instanceof Error) return `error ${reply.message}`;
  return Array.isArray(reply) ? reply.map(toComparable) : reply;
};
const assertParsed = (parsed: readonly Reply[], expected: readonly Reply[], message: string): void =>
  assert.deepEqual(parsed.map(toComparable), expected.map(toComparable), message);

test('The reply parser reads replies that are cut at any byte', () => {
  const bytes = Buffer.concat(replies.map(encode));
  for (let cut = 1; cut < bytes.length; cut++)
    assertParsed(parse(bytes, [cut, bytes.length]), replies, `cut at ${cut}`);
  assertParsed(parse(bytes, [1]), replies, 'byte by byte');
  assertParsed(parse(bytes, []), replies, 'in one piece');
});

test('The reply parser reads any replies in any pieces', () => {
  const value = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const leaf = fc.oneof(value, fc.constant(null), fc.integer(), fc.maxSafeInteger());
  const { list } = fc.letrec<{ list: Reply }>((tie) => ({
    list: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('list'), { maxLength: 6 })),
  }));
  const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 9 });
  forRuns(roundsOf(100, 300), fc.array(list, { maxLength: 8 }), sizes, (made, cuts) => {
    assertParsed(parse(Buffer.concat(made.map(encode)), cuts), made, `${cuts}`);
  });
});

test('The reply parser reads simple strings and null lists, and rejects other bytes', () => {
  assert.deepEqual(parse(Buffer.from('+QUEUED\r\n*-1\r\n'), []), [Buffer.from('QUEUED'), null]);
  assert.throws(() => parse(Buffer.from('HTTP/1.1 400\r\n'), []), /invalid reply from Redis: byte 72/);
  const sequence = createReplySequence([Buffer.from('O'), [null]]);
  assert.throws(sequence.list, /unexpected type of a Redis reply/);
  assert.deepEqual(sequence.list(), [null]);
});

test('parseTransaction reports a commit only if every reply is in its place', () => {
  const [ok, queued, extra] = ['OK', 'QUEUED', '# Server'].map((text) => Buffer.from(text));
  const parseTwo = (...list: readonly unknown[]) => parseTransaction(2, list as Reply[]);
  const committed = { isCommitted: true, replicas: 0 };
  assert.deepEqual(parseTwo(ok, queued, queued, [1, 0]), committed);
  assert.deepEqual(parseTwo(ok, queued, queued, [1, 0], 2), { isCommitted: true, replicas: 2 });
  assert.deepEqual(parseTwo(ok, queued, queued, null, 2), { isCommitted: false, replicas: 0 });
  assert.deepEqual(parseTwo(ok, queued, queued, [1, 0], new Error('UNBLOCKED')), committed);
  // One place too late, behind a reply that belongs to no command.
  assert.throws(() => parseTwo(extra, ok, queued, queued), /unexpected type of a Redis reply/);
  assert.throws(() => parseTwo(extra, ok, queued, queued, null), /unexpected type of a Redis reply/);
  assert.throws(() => parseTwo(ok, queued, queued, [1]), /unexpected type of a Redis reply/);
  assert.throws(() => parseTwo(ok, queued, queued, [1, new Error('WRONGTYPE')]), /WRONGTYPE/);
  assert.throws(() => parseTwo(ok, new Error('OOM'), queued, new Error('EXECABORT')), /OOM/);
});

test('A transaction that Redis aborts as a whole for lack of memory is UNAVAILABLE', async () => {
  const [ok, queued, aborted] = ['+OK', '+QUEUED', '-EXECABORT Transaction discarded because of: OOM'];
  const sent = Promise.resolve(parse(Buffer.from([ok, queued, aborted, ''].join('\r\n')), []));
  const committed = mapRedisErrors(sent.then((list) => parseTransaction(1, list)));
  await assert.rejects(committed, { code: 'UNAVAILABLE' });
});
