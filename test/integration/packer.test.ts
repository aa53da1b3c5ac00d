/** What the packer writes and Redis's scripts read, and what they write and the reader reads. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { connectRedis, whenReady } from '../../src/store/client.js';
import { createPackReader, type PackReader } from '../../src/store/pack-reader.js';
import { createPacker, type Packer } from '../../src/store/packer.js';
import { fc } from '../support/properties.js';
import { startBareRedis } from '../support/service.js';

const { url } = await startBareRedis({ after });
const client = connectRedis(url) as Redis;
after(() => client.disconnect());
await whenReady(client, 5000);

/** What a list may hold: a text, bytes, or a list of such. */
type Value = string | Buffer | readonly Value[];

function pack(packer: Packer, value: Value): void {
  if (typeof value === 'string') packer.text(value);
  else if (Buffer.isBuffer(value)) packer.bytes(value);
  else {
    packer.list(value.length);
    for (const inner of value) pack(packer, inner);
  }
}

const packed = (value: Value, size?: number): Buffer => {
  const packer = createPacker(size);
  pack(packer, value);
  return packer.done();
};

/** Reads what is expected to be there. */
function read(reader: PackReader, like: Value): Value {
  if (typeof like === 'string') return reader.text();
  if (Buffer.isBuffer(like)) return reader.bytes();
  return Array.from({ length: reader.list() }, (_, i) => read(reader, like[i] ?? ''));
}

const echo = 'return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))';
const throughRedis = (bytes: Buffer): Promise<Buffer> =>
  client.callBuffer('EVAL', echo, '0', bytes) as Promise<Buffer>;

/** Lengths around those where a head grows; a text's is chosen by three times its UTF-16 units. */
const lengths = [0, 1, 10, 11, 15, 16, 31, 32, 127, 128, 255, 256, 21_845, 21_846, 65_535, 65_536, 70_000];
const length = fc.oneof(fc.constantFrom(...lengths), fc.nat(300));
const character = fc.constantFrom('a', '\0', '\u001e', '\n', 'é', '€', '🙂');
const text = fc.tuple(character, length).map(([one, times]) => one.repeat(times));
const bytes = fc.tuple(fc.nat(255), length).map(([byte, times]) => Buffer.alloc(times, byte));
const value: fc.Arbitrary<Value> = fc.letrec<{ value: Value; list: Value[] }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, text, bytes, tie('list')),
  list: fc.array(tie('value'), { maxLength: 20 }),
})).value;

test('whatever is packed, Redis and the reader read as it was', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(value, { maxLength: 20 }),
      fc.constantFrom(1, 16, 16_384),
      async (list, size) => {
        const reader = createPackReader(await throughRedis(packed(list, size)));
        assert.deepEqual(read(reader, list), list);
      },
    ),
    { numRuns: 200 },
  );
});

for (const one of ['a', 'é', '€', '🙂']) {
  test(`texts of ${one} of every length where a head changes`, async () => {
    const texts = lengths
      .flatMap((count) => [count - 1, count, count + 1])
      .map((count) => one.repeat(Math.max(0, count)));
    const reader = createPackReader(await throughRedis(packed(texts)));
    assert.deepEqual(read(reader, texts), texts);
  });
}

for (const count of [0, 15, 16, 65_535]) {
  test(`a list of ${count}`, async () => {
    const list = Array.from({ length: count }, (_, i) => `${i}`);
    const reader = createPackReader(await throughRedis(packed(list)));
    assert.deepEqual(read(reader, list), list);
  });
}

test('a longer list, or a larger number, than there is a head for is an error', () => {
  assert.throws(() => createPacker().list(65_536), RangeError);
  assert.throws(() => createPacker().uint(2 ** 32), RangeError);
});

test('Redis packs longer lists, and absent values, which the reader reads', async () => {
  const script =
    'local list = {} for i = 1, 65536 do list[i] = i % 2 == 0 and tostring(i) end return cmsgpack.pack(list)';
  const reader = createPackReader((await client.callBuffer('EVAL', script, '0')) as Buffer);
  const list = Array.from({ length: reader.list() }, reader.maybeBytes);
  assert.equal(list.length, 65_536);
  assert.deepEqual([list[0], list[1], list[65_535]], [null, Buffer.from('2'), Buffer.from('65536')]);
});

test('whole numbers up to 32 bits', async () => {
  const numbers = [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
  const packer = createPacker(1);
  packer.list(numbers.length);
  for (const number of numbers) packer.uint(number);
  const script = `
    local numbers = cmsgpack.unpack(ARGV[1])
    for i = 1, #numbers do numbers[i] = string.format('%.0f', numbers[i]) end
    return numbers`;
  assert.deepEqual(((await client.eval(script, 0, packer.done())) as string[]).map(Number), numbers);
});

test('what is no list or text where one is expected is an error', () => {
  assert.throws(() => createPackReader(packed('text')).list(), /a list is expected/);
  assert.throws(() => createPackReader(packed([])).text(), /a string is expected/);
  assert.throws(() => createPackReader(Buffer.alloc(0)).list(), /a list is expected/);
});
