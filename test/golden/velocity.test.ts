import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeTheilSen } from '../../src/domain/learner/velocity.js';
import { closeDay, computeMomentum, newMomentum } from '../../src/domain/tracing/momentum.js';
import { close, vectors } from './vectors.js';

const { t, y, slope, lo90, hi90 } = vectors.theil_sen;
const points = t.map((time, i) => ({ time, value: y[i] as number }));

test('Theil-Sen slope and its interval', () => {
  const found = computeTheilSen(points);
  assert.ok(found);
  close(found.slope, slope, 'slope');
  close(found.low, lo90, 'low');
  close(found.high, hi90, 'high');
});

test('momentum', () => {
  let state = newMomentum;
  for (const { time, value } of points) state = closeDay(state, time, value);
  const { short, long, momentum } = vectors.momentum;
  close(state.short, short, 'short');
  close(state.long, long, 'long');
  close(computeMomentum(state)?.value ?? Number.NaN, momentum, 'momentum');
  assert.equal(computeMomentum(state)?.label, 'building');
});
