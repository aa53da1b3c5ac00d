/** The MessagePack reader against the packer of Redis. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { createMessagePackReader } from '../../src/store/redis/wire/messagepack-reader.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';

const { url } = await startBareRedis({ after });
const client = (await redisOf({ after }, url)) as Redis;

/** Packs lists of strings. Each list follows its length in ARGV. */
const packLists = `
local lists, at = {}, 1
while at <= #ARGV do
  local list = {}
  for i = 1, tonumber(ARGV[at]) do list[i] = ARGV[at + i] end
  lists[#lists + 1], at = list, at + #list + 1
end
return cmsgpack.pack(lists)`;

type Strings = readonly (string | Buffer)[];

const packed = (...lists: readonly Strings[]): Promise<Buffer> => {
  const args = lists.flatMap((list) => [list.length, ...list]);
  return client.callBuffer('EVAL', packLists, '0', ...args) as Promise<Buffer>;
};

async function assertRead(...lists: readonly Strings[]): Promise<void> {
  const reader = createMessagePackReader(await packed(...lists));
  assert.equal(reader.list(), lists.length);
  for (const list of lists) {
    assert.equal(reader.list(), list.length);
    const found = list.map((value) => (typeof value === 'string' ? reader.readText() : reader.readBytes()));
    assert.deepEqual(found, list);
  }
}

/** Lengths at which the header of a string grows. */
const lengths = [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536, 70_000];
const length = fc.oneof(fc.constantFrom(...lengths), fc.nat(300));
const character = fc.constantFrom('a', '\0', '\u001e', '\n', 'é', '€', '🙂');
const text = fc.tuple(character, length).map(([one, times]) => one.repeat(times));
const bytes = fc.tuple(fc.nat(255), length).map(([byte, times]) => Buffer.alloc(times, byte));
const strings = fc.array(fc.oneof(text, bytes), { maxLength: 20 });

test('createMessagePackReader returns all lists of strings that Redis packed', async () => {
  const lists = fc.array(strings, { minLength: 1, maxLength: 5 });
  const property = fc.asyncProperty(lists, async (given) => assertRead(...given));
  await assertAsync(property, { numRuns: 60 });
});

test('createMessagePackReader reads strings of every header length', async () => {
  const around = lengths.flatMap((count) => [count - 1, count, count + 1]).filter((count) => count >= 0);
  for (const one of ['a', 'é']) await assertRead(around.map((count) => one.repeat(count)));
  await assertRead(around.map((count) => Buffer.alloc(count, 0xff)));
});

test('createMessagePackReader reads lists of every header length', async () => {
  for (const count of [0, 15, 16, 65_535, 65_536]) {
    const script = `local list = {} for i = 1, ${count} do list[i] = tostring(i) end return cmsgpack.pack(list)`;
    const reader = createMessagePackReader((await client.callBuffer('EVAL', script, '0')) as Buffer);
    const list = Array.from({ length: reader.list() }, reader.readText);
    const expected = count === 0 ? [0, undefined, undefined] : [count, '1', `${count}`];
    assert.deepEqual([list.length, list[0], list.at(-1)], expected);
  }
});

test('createMessagePackReader skips strings and reports the position of the next value', async () => {
  const bytes = await packed(['a', 'a text of more than thirty-one bytes'], ['next']);
  const reader = createMessagePackReader(bytes);
  reader.list();
  for (let left = reader.list(); left > 0; left--) reader.skip();
  const next = createMessagePackReader(bytes, reader.position());
  assert.deepEqual([next.list(), next.readText(), next.position()], [1, 'next', bytes.length]);
});

test('createMessagePackReader throws if the next value has another type', () => {
  assert.throws(() => createMessagePackReader(Buffer.from([0xa1, 0x61])).list(), /instead of a list/);
  assert.throws(() => createMessagePackReader(Buffer.from([0x90])).readText(), /instead of a string/);
  assert.throws(() => createMessagePackReader(Buffer.alloc(0)).list(), /instead of a list/);
});
