import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLaneScaler } from '../../src/compute/compute.js';

test('a lane is added where all threads have no time left, and never more than there may be', () => {
  const load = createLaneScaler(3);
  assert.equal(load([0.89]), 1);
  assert.equal(load([0.95]), 2);
  assert.equal(load([0.95, 0.8]), 2, 'the other one has time');
  assert.equal(load([0.95, 0.9]), 3);
  assert.equal(load([1, 1, 1]), 3);
});

test('a lane is given up where the others have had time for its work for a while', () => {
  const load = createLaneScaler(3);
  const quiet = [0.3, 0.25];
  for (let look = 1; look < 10; look++) assert.equal(load(quiet), 2);
  assert.equal(load([0.4, 0.3]), 2, 'it begins anew');
  for (let look = 1; look < 10; look++) assert.equal(load(quiet), 2);
  assert.equal(load(quiet), 1);
  for (let look = 1; look < 20; look++) assert.equal(load([0]), 1);
});
