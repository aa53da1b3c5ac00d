import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createArrivingBody } from '../../src/http/arriving-body.js';

const mebibyte = 1024 * 1024;

test('bodies that arrive together take 96 MiB at most, and leave room again when they are over', () => {
  const piece = new Uint8Array(mebibyte);
  const bodies = Array.from({ length: 97 }, () => createArrivingBody(mebibyte));
  assert.deepEqual(
    bodies.map((body) => body.add(piece)),
    bodies.map((_, i) => i < 96),
  );
  bodies[0]?.forget();
  bodies[1]?.take();
  const later = [createArrivingBody(mebibyte), createArrivingBody(mebibyte), createArrivingBody(mebibyte)];
  assert.deepEqual(
    later.map((body) => body.add(piece)),
    [true, true, false],
  );
});
