/** Texts and order of the learners who need the teacher, and changes of a class between two periods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDay } from '../../src/domain/base/calendar.js';
import { normalQuantile, studentQuantile } from '../../src/domain/base/normal-distribution.js';
import {
  type AttentionSubject,
  selectAttention,
  selectStuckSkill,
} from '../../src/domain/classes/class-attention.js';
import {
  computeChange,
  findClearSign,
  hasClearRise,
  sumChanges,
} from '../../src/domain/classes/class-change.js';
import { assertNear } from '../support/near.js';
import { valuesOf } from '../support/values-of.js';

const today = parseDay('2026-06-30');

const learner: AttentionSubject = {
  ...{
    userId: 'ada',
    status: 'on_track',
    idleDays: 0,
    targetDate: null,
    chance: 0.6,
  },
  ...{ fallPoints: null, rapidSkills: [], stuck: null },
};
const listed = (change: Partial<AttentionSubject>) =>
  selectAttention([{ ...learner, ...change }], nameSkill, today);
const textOf = (change: Partial<AttentionSubject>) => listed(change)[0]?.text ?? null;
const ratios = { skillId: 'ratios' };
const nameSkill = (skillId: string) => (skillId === 'ratios' ? 'Ratios' : skillId);

test('selectAttention lists idle learners from 7 to 34 days without answers', () => {
  const cases = [
    [6, null],
    [7, 'no answers for 7 days'],
    [34, 'no answers for 34 days'],
    [35, null],
  ] as const;
  for (const [idleDays, text] of cases) assert.equal(textOf({ idleDays }), text, `${idleDays}`);
});

test('selectAttention lists goals within 60 days that are less than half likely, in whole percent', () => {
  const cases: readonly [
    status: AttentionSubject['status'],
    targetDate: string | null,
    chance: number,
    text: string | null,
  ][] = [
    ['at_risk', '2026-07-14', 0.1299, 'goal in 14 days, 12 % likely'],
    ['at_risk', '2026-06-30', 0.4999, 'goal today, 49 % likely'],
    ['unlikely', '2026-07-01', 0.004, 'goal tomorrow, less than 1 % likely'],
    ['unlikely', '2026-08-29', 0.1, 'goal in 60 days, 10 % likely'],
    ['unlikely', '2026-08-30', 0.1, null],
    ['unlikely', null, 0.1, null],
    ['at_risk', '2026-07-14', 0.5, null],
    // The status tolerates small changes of the chance.
    ['on_track', '2026-07-14', 0.45, null],
    ['expired', '2026-06-29', 0, null],
    ['few', '2026-07-14', 0.1, null],
  ];
  for (const [status, targetDate, chance, text] of cases)
    assert.equal(textOf({ status, targetDate, chance }), text, `${status} ${targetDate} ${chance}`);
});

test('selectAttention gives the first cause, with the goal', () => {
  const stuck = { ...ratios, answers: 12, correct: 3 };
  const goal = { status: 'unlikely', targetDate: '2026-07-14', chance: 0.12 } as const;
  assert.equal(textOf({ stuck }), 'stuck on Ratios: 3 of the last 12 right');
  assert.equal(textOf({ stuck: { ...ratios, answers: 0, correct: 0 } }), 'stuck on Ratios');
  assert.equal(textOf({ stuck, fallPoints: 18 }), 'recent accuracy 18 points below earlier accuracy');
  const rapid = listed({ stuck, fallPoints: 18, rapidSkills: ['ratios', 'algebra'], ...goal });
  assert.deepEqual(valuesOf(rapid, 'code'), ['RAPID']);
  assert.equal(
    rapid[0]?.text,
    'many answers on Ratios are too fast to be solutions; goal in 14 days, 12 % likely',
  );
  assert.equal(rapid[0]?.skillId, 'ratios');
  assert.equal(textOf({ ...goal, stuck: { ...stuck, skillId: 'x'.repeat(500) } })?.includes('…'), true);
});

test('selectAttention takes turns between the reasons and lists at most ten learners', () => {
  const idle = Array.from({ length: 12 }, (_, i) => ({
    ...{ ...learner, userId: `idle-${i}`, idleDays: 7 + i },
  }));
  const falling = [12, 30].map((fallPoints) => ({ ...learner, userId: `falling-${fallPoints}`, fallPoints }));
  const stuck = { ...learner, userId: 'stuck', stuck: { ...ratios, answers: 12, correct: 5 } };
  assert.deepEqual(
    valuesOf(selectAttention([...idle, ...falling, stuck, learner], nameSkill, today), 'userId'),
    [
      ...['idle-0', 'falling-30', 'stuck', 'idle-1', 'falling-12'],
      ...['idle-2', 'idle-3', 'idle-4', 'idle-5', 'idle-6'],
    ],
  );
});

test('selectStuckSkill takes the plateau with the fewest right answers, at most 8 of 12', () => {
  const latest = (skillId: string, correct: number, answers = 12) => ({ skillId, correct, answers });
  const rows = [latest('a', 6), latest('b', 3), latest('c', 1)];
  assert.deepEqual(selectStuckSkill(['a', 'b'], rows), latest('b', 3));
  assert.deepEqual(selectStuckSkill(['a', 'b'], null), latest('a', 0, 0));
  assert.equal(selectStuckSkill([], null), null);
  assert.equal(selectStuckSkill(['a'], []), null);
  assert.equal(selectStuckSkill(['a'], [latest('a', 9)]), null);
  assert.deepEqual(selectStuckSkill(['a'], [latest('a', 8)]), latest('a', 8));
});

test('studentQuantile agrees with tables', () => {
  const table = [
    [0.9, 4, 1.5332],
    [0.9, 10, 1.3722],
    [0.9, 100, 1.2901],
    [0.975, 4, 2.7764],
    [0.975, 30, 2.0423],
  ] as const;
  for (const [p, freedom, value] of table)
    assertNear(studentQuantile(p, freedom) / value, 1, freedom < 10 ? 0.02 : 1e-3, `${p} ${freedom}`);
  assertNear(studentQuantile(0.9, 1e9), normalQuantile(0.9), 1e-8);
});

test('computeChange needs 5 learners, and findClearSign 8 learners and a 98 % interval without 0', () => {
  assert.equal(computeChange({ learners: 4, mean: 0.5, sd: 0.1 }), null);
  const change = computeChange({ learners: 25, mean: 0.1, sd: 0.2 });
  assertNear(change?.low, 0.1 - 1.3178 * 0.04, 1e-4);
  assertNear(change?.high, 0.1 + 1.3178 * 0.04, 1e-4);
  assert.equal(findClearSign({ learners: 25, mean: 0.1, sd: 0.2 }), 1);
  assert.equal(findClearSign({ learners: 25, mean: -0.1, sd: 0.2 }), -1);
  assert.equal(findClearSign({ learners: 25, mean: 0.09, sd: 0.2 }), 0);
  assert.equal(findClearSign({ learners: 7, mean: 0.9, sd: 0 }), 0);
});

test('sumChanges ignores learners without answers in both periods, and hasClearRise few answers', () => {
  const sums = (answers: number, correct: number, earlierAnswers: number, earlierCorrect: number) => ({
    ...{ answers, correct, earlierAnswers, earlierCorrect },
  });
  const { learners, mean, sd } = sumChanges([
    sums(4, 3, 4, 1),
    sums(10, 5, 10, 5),
    sums(5, 5, 0, 0),
    sums(0, 0, 5, 0),
  ]);
  assert.deepEqual([learners, mean], [2, 0.25]);
  assertNear(sd, 0.5 / Math.SQRT2);
  assert.equal(hasClearRise(sums(19, 19, 50, 0)), false);
  assert.equal(hasClearRise(sums(20, 20, 20, 10)), true);
  assert.equal(hasClearRise(sums(20, 13, 20, 10)), false);
  assert.equal(hasClearRise(sums(40, 10, 40, 30)), false);
});
