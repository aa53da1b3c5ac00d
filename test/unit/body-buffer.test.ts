import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createBodyBuffer } from '../../src/http/body-buffer.js';

const mebibyte = 1024 * 1024;
const piece = new Uint8Array(mebibyte);

/** Buffers of a mebibyte, and the indexes of those that were dropped. */
function createBuffers(t: TestContext, count: number) {
  const dropped: number[] = [];
  const buffers = Array.from({ length: count }, (_, i) => createBodyBuffer(mebibyte, () => dropped.push(i)));
  t.after(() => {
    for (const buffer of buffers) buffer.release();
  });
  return { buffers, dropped };
}

test('Body buffers take at most 96 MiB together, and free their memory at the end', (t) => {
  const { buffers, dropped } = createBuffers(t, 100);
  for (const buffer of buffers.slice(0, 97)) buffer.add(piece);
  assert.deepEqual(dropped, [96]);
  buffers[0]?.release();
  assert.equal(buffers[1]?.complete().length, mebibyte);
  for (const buffer of buffers.slice(97)) buffer.add(piece);
  assert.deepEqual(dropped, [96, 99]);
});

test('Body buffers that are older than 10 s are dropped, oldest first, if others need their memory', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const { buffers, dropped } = createBuffers(t, 99);
  for (const buffer of buffers.slice(0, 96)) {
    buffer.add(new Uint8Array(mebibyte / 2));
    now += 1;
  }
  for (const buffer of buffers.slice(0, 96)) buffer.add(piece.subarray(0, 1));
  buffers[96]?.add(piece);
  assert.deepEqual(dropped, [96], 'no buffer is old yet');
  now = 10_001;
  buffers[97]?.add(piece);
  buffers[98]?.add(piece);
  assert.deepEqual(dropped, [96, 0, 1]);
  buffers[0]?.add(piece);
  assert.deepEqual([buffers[0]?.complete().length, buffers[97]?.complete().length], [0, mebibyte]);
});
