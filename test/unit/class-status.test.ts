/** The class page of the dashboard: status of a learner, and lists of learner ids. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeStatus, explainStatus, type StatusInput } from '../../src/domain/classes/learner-status.js';
import {
  joinIds,
  parseFileIds,
  parsePastedIds,
  splitIds,
} from '../../src/pages/dashboard/pages/class/learner-ids.js';

const learner: StatusInput = {
  ...{ answers: 20, idleDays: 1, goalStatus: 'at_risk', isOnTrack: false },
  ...{ currentTotal: 1080, targetScore: 1220, targetDate: null, daysToGoal: null, chance: 0.2 },
  ...{ answersPerDay: 1.5, isFalling: false, plateaus: [] },
};
const statusWith = (changes: Partial<StatusInput>) => computeStatus({ ...learner, ...changes });
const goalStatuses = ['none', 'on_track', 'at_risk', 'unlikely', 'reached', 'expired'] as const;

test('computeStatus follows the status of the goal from 20 answers on', () => {
  for (const goalStatus of goalStatuses) {
    assert.equal(statusWith({ goalStatus }), goalStatus);
    const expected = goalStatus === 'expired' ? 'expired' : 'few';
    assert.equal(statusWith({ goalStatus, answers: 19 }), expected);
    assert.equal(statusWith({ goalStatus, answers: 0, idleDays: null }), expected);
  }
});

test('computeStatus returns idle from the fourteenth day without an answer on', () => {
  const idleDays = 14;
  for (const goalStatus of goalStatuses) {
    const isFact = goalStatus === 'expired' || goalStatus === 'reached';
    assert.equal(statusWith({ idleDays, goalStatus }), isFact ? goalStatus : 'idle');
    assert.equal(statusWith({ idleDays: 13, goalStatus }), goalStatus);
  }
  assert.equal(statusWith({ idleDays, goalStatus: 'reached', answers: 3 }), 'idle');
  // The clock of the sender may be ahead.
  assert.equal(statusWith({ idleDays: -1 }), 'at_risk');
});

test('explainStatus names the missing points, answers or practice', () => {
  const cases: readonly [changes: Partial<StatusInput>, reason: string | null][] = [
    [{ goalStatus: 'none', targetScore: null, chance: null }, null],
    [{ goalStatus: 'on_track' }, null],
    [{ goalStatus: 'none', plateaus: ['Commas'] }, 'plateau on Commas'],
    [
      { goalStatus: 'none', isFalling: true, plateaus: ['Commas'] },
      'recent results are weaker; plateau on Commas',
    ],
    [{}, '140 below goal; 1.5 answers per day over 14 days'],
    [
      { goalStatus: 'unlikely', plateaus: ['Commas', 'Circles'], answersPerDay: 0.05 },
      '140 below goal; almost no practice; plateau on Commas and 1 more',
    ],
    [{ isOnTrack: true }, 'forecast barely meets the goal; 1.5 answers per day over 14 days'],
    [
      { daysToGoal: 40 },
      'forecast meets the goal in 40 days: too late or only temporarily; 1.5 answers per day over 14 days',
    ],
    [{ goalStatus: 'reached', currentTotal: 1220, isOnTrack: true }, null],
    [{ goalStatus: 'reached', currentTotal: 1220 }, 'forecast falls below the goal'],
    [{ goalStatus: 'reached', currentTotal: 1210 }, '10 below goal again'],
    [{ goalStatus: 'expired', targetDate: '2026-06-29' }, '140 below goal'],
    [{ answers: 7 }, '7 of 20 answers'],
    [{ idleDays: 29 }, 'no answer for 29 days'],
  ];
  for (const [changes, reason] of cases) assert.equal(explainStatus({ ...learner, ...changes }), reason);
  assert.equal(explainStatus(learner, true), '140 below goal');
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
