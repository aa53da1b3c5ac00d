import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBodyBuffer } from '../../src/http/body-buffer.js';

const mebibyte = 1024 * 1024;

/** Bodies of a mebibyte each, and which of them were given up. */
function manyBodies(count: number) {
  const givenUp: number[] = [];
  const bodies = Array.from({ length: count }, (_, i) => createBodyBuffer(mebibyte, () => givenUp.push(i)));
  return { bodies, givenUp };
}

test('bodies that arrive together take 96 MiB at most, and leave room again when they are over', () => {
  const piece = new Uint8Array(mebibyte);
  const { bodies, givenUp } = manyBodies(100);
  for (const body of bodies.slice(0, 97)) body.add(piece);
  assert.deepEqual(givenUp, [96]);
  bodies[0]?.release();
  assert.equal(bodies[1]?.complete().length, mebibyte);
  for (const body of bodies.slice(97)) body.add(piece);
  assert.deepEqual(givenUp, [96, 99]);
  for (const body of bodies) body.release();
});

test('of bodies that take for ever, those that began first make room for others', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const { bodies, givenUp } = manyBodies(99);
  for (const body of bodies.slice(0, 96)) {
    body.add(new Uint8Array(mebibyte / 2));
    now += 1;
  }
  const piece = new Uint8Array(mebibyte);
  for (const body of bodies.slice(0, 96)) body.add(piece.subarray(0, 1));
  bodies[96]?.add(piece);
  assert.deepEqual(givenUp, [96], 'none of them has been at it for long');
  now = 10_001;
  bodies[97]?.add(piece);
  bodies[98]?.add(piece);
  assert.deepEqual(givenUp, [96, 0, 1]);
  bodies[0]?.add(piece);
  assert.deepEqual(
    [0, 97].map((i) => bodies[i]?.complete().length),
    [0, mebibyte],
  );
  for (const body of bodies) body.release();
});
