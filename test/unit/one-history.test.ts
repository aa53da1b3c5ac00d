/** Which states of a learner are of one history: what is listed or exported between them is of one as well. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { continuesHistory } from '../../src/services/learners/list-attempts.js';
import { createLearnerState } from '../../workers/track/plan-learner.js';

const begun = { ...createLearnerState(), version: 1000, attempts: 1 };

test('the first answer follows on none, at whatever version a history begins', () => {
  assert.ok(continuesHistory(newLearner, newLearner));
  assert.ok(continuesHistory(newLearner, begun));
});

test('every commit counts an answer at least; who was corrected or erased does not follow', () => {
  assert.ok(continuesHistory(begun, { ...begun, version: 1002, attempts: 9 }));
  assert.ok(!continuesHistory(begun, { ...begun, version: 1001, attempts: 1 }), 'an answer was taken back');
  assert.ok(!continuesHistory(begun, newLearner), 'all was erased');
  assert.ok(!continuesHistory(begun, { ...begun, version: 900_000, attempts: 3 }), 'another history began');
});
