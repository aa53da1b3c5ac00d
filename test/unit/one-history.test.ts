import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { continuesHistory } from '../../src/services/learners/list-attempts.js';
import { createLearnerState } from '../../workers/track/plan-learner.js';

const started = { ...createLearnerState('UTC'), version: 1000, attempts: 1 };

test('continuesHistory accepts a first answer, and rejects states after a retraction, an erasure or in another history', () => {
  assert.ok(continuesHistory(newLearner, newLearner));
  assert.ok(continuesHistory(newLearner, started), 'a first answer has any version');
  assert.ok(continuesHistory(started, { ...started, version: 1002, attempts: 9 }));
  assert.ok(!continuesHistory(started, { ...started, version: 1001, attempts: 1 }), 'retraction');
  assert.ok(!continuesHistory(started, newLearner), 'erasure');
  assert.ok(!continuesHistory(started, { ...started, version: 900_000, attempts: 3 }), 'another history');
});
