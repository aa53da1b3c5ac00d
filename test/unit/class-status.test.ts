/** The class page of the dashboard: status of a learner, and lists of learner ids. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  joinIds,
  parseFileIds,
  parsePastedIds,
  splitIds,
} from '../../src/pages/dashboard/pages/class/learner-ids.js';
import {
  computeStatus,
  explainStatus,
  type StatusInput,
} from '../../src/pages/dashboard/pages/class/status.js';

const now = Date.parse('2026-06-30T00:30:00Z');

const learner: StatusInput = {
  ...{ answers: 20, lastAnswerAt: '2026-06-29T10:00:00Z', isOnTrack: false, currentTotal: 1080 },
  ...{ targetScore: 1220, targetDate: null, daysToGoal: null, answersPerDay: 1.5, plateaus: [] },
};
const statusWith = (changes: Partial<StatusInput>) => computeStatus({ ...learner, ...changes }, now);

test('computeStatus follows the forecast from 20 answers on', () => {
  assert.equal(statusWith({}), 'risk');
  assert.equal(statusWith({ isOnTrack: true }), 'track');
  assert.equal(statusWith({ isOnTrack: true, answers: 19 }), 'few');
  assert.equal(statusWith({ answers: 0, lastAnswerAt: null }), 'few');
});

test('computeStatus returns idle from the fourteenth UTC day without an answer on', () => {
  assert.equal(statusWith({ lastAnswerAt: '2026-06-16T23:59:59Z' }), 'idle');
  assert.equal(statusWith({ lastAnswerAt: '2026-06-17T00:00:00Z' }), 'risk');
  assert.equal(statusWith({ lastAnswerAt: '2026-06-16T23:59:59Z', isOnTrack: true, answers: 3 }), 'idle');
  // The clock of the sender may be ahead.
  assert.equal(statusWith({ lastAnswerAt: '2026-06-30T00:34:00Z' }), 'risk');
});

test('explainStatus names the missing points, answers or practice', () => {
  const cases: readonly [changes: Partial<StatusInput>, reason: string | null][] = [
    [{ isOnTrack: true }, null],
    [{ isOnTrack: true, targetDate: '2026-06-29' }, 'goal date passed, score meets the goal'],
    [{}, '140 points below the goal; 1.5 answers per day'],
    [
      { plateaus: ['Commas', 'Circles'], answersPerDay: 0.05 },
      '140 points below the goal; almost no practice; plateau on Commas and 1 more',
    ],
    [
      { currentTotal: 1220 },
      'score meets the goal now, but the forecast falls below it; 1.5 answers per day',
    ],
    [
      { daysToGoal: 40 },
      'forecast meets the goal in 40 days: too late or only temporarily; 1.5 answers per day',
    ],
    [{ targetDate: '2026-06-30' }, '140 points below the goal; 1.5 answers per day'],
    [{ targetDate: '2026-06-29' }, 'goal date passed, 140 points below the goal; 1.5 answers per day'],
    [{ answers: 7 }, '7 of 20 answers'],
    [{ lastAnswerAt: '2026-06-01T12:00:00Z' }, 'no answer for 29 days'],
  ];
  for (const [changes, reason] of cases) assert.equal(explainStatus({ ...learner, ...changes }, now), reason);
});

test('parsePastedIds splits ids at any separator, and removes duplicates', () => {
  const pasted = parsePastedIds(' ada \r\nbob,cy\tdee\n\nada\n"a, b"');
  assert.deepEqual(pasted, ['ada', 'bob', 'cy', 'dee', 'a, b']);
  assert.deepEqual(parsePastedIds(' \n'), []);
  assert.deepEqual(splitIds(joinIds(['a,b', 'c d'])), ['a,b', 'c d']);
});

test('parseFileIds reads the first column without its header', () => {
  assert.deepEqual(parseFileIds('\uFEFFuser_id,name\nada,Ada\n"b,ob",Bob\n'), ['ada', 'b,ob']);
  assert.deepEqual(parseFileIds('Learner;Status\nada;On track\n'), ['ada']);
  assert.deepEqual(parseFileIds('ada\nbob\n'), ['ada', 'bob']);
});
