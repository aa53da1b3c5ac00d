import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detectSkillChanges } from '../../src/domain/answer/apply-answer.js';
import { masteryLossThreshold, masteryThresholds } from '../../src/domain/base/bkt-parameters.js';
import { goalConstants } from '../../src/domain/base/score-constants.js';
import {
  detectGoalChanges,
  type GoalAlerts,
  type GoalStanding,
  updateAlerts,
} from '../../src/domain/score/goal.js';
import { isPlateau } from '../../src/domain/tracing/plateau.js';
import { countAnswers } from '../support/builders/answers.js';
import { fc, forAll } from '../support/builders/properties.js';

const answers = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 80, size: 'max' });

/** States after each answer. @param rightInTen share of right answers */
const statesOf = (list: readonly number[], rightInTen: number) =>
  list
    .map((draw) => ({ isCorrect: draw < rightInTen }))
    .map((_, i, all) => countAnswers(all.slice(0, i + 1)).skills[0]);

test('detectSkillChanges reports mastery at .95, again only after a drop below .80, and plateaus in turn', () => {
  const seen = new Map<string, number>();
  forAll(answers, fc.constantFrom(4, 6, 8, 9), (list, rightInTen) => {
    let before = countAnswers([]).skills[0];
    let [lowest, inPlateau] = [0, false];
    for (const after of statesOf(list, rightInTen)) {
      const changes = detectSkillChanges(before, after);
      for (const change of changes) seen.set(change, (seen.get(change) ?? 0) + 1);
      const isDue = lowest < masteryLossThreshold && after.mastery >= masteryThresholds.mastery;
      assert.equal(changes.includes('mastery.reached'), isDue);
      lowest = isDue ? 1 : Math.min(lowest, after.mastery);
      if (changes.includes('plateau.detected')) assert.equal(inPlateau, false);
      if (changes.includes('plateau.ended')) assert.equal(inPlateau, true);
      inPlateau = isPlateau(after.plateau);
      before = after;
    }
  });
  assert.deepEqual([...seen.keys()].sort(), ['mastery.reached', 'plateau.detected', 'plateau.ended']);
});

const totals = fc.integer({ min: 100, max: 140 }).map((tens) => 10 * tens);
const totalPairs = fc.array(fc.tuple(totals, totals), { minLength: 1, maxLength: 40 });

const statusOf = (currentTotal: number, predictedTotal: number): GoalStanding => {
  const goal = {
    targetScore: 1200,
    targetDate: null,
    updatedAt: 7,
    today: 20_000,
    status: 'at_risk',
    hasBaseline: true,
  } as const;
  return {
    ...goal,
    currentTotal,
    predictedTotal,
    probability: 0.5,
    onTrack: predictedTotal >= goal.targetScore,
  };
};

test('detectGoalChanges repeats an alert only after the total came back by 20 points', () => {
  forAll(totalPairs, fc.boolean(), (list, isNew) => {
    let alerts: GoalAlerts | null = isNew ? { updatedAt: 7, reached: false, atRisk: false } : null;
    const armed = { 'goal.reached': isNew, 'goal.at_risk': isNew };
    for (const [current, predicted] of list) {
      const next = updateAlerts(alerts, statusOf(current, predicted));
      const changes = detectGoalChanges(alerts, next);
      // The first check of a goal raises no alert.
      if (alerts === null)
        Object.assign(armed, { 'goal.reached': current < 1200, 'goal.at_risk': predicted >= 1200 });
      if (current <= 1200 - goalConstants.alertMargin) armed['goal.reached'] = true;
      if (predicted >= 1200 + goalConstants.alertMargin) armed['goal.at_risk'] = true;
      const due = { 'goal.reached': current >= 1200, 'goal.at_risk': predicted < 1200 };
      for (const type of ['goal.reached', 'goal.at_risk'] as const) {
        assert.equal(changes.includes(type), alerts !== null && armed[type] && due[type], type);
        if (due[type]) armed[type] = false;
      }
      alerts = next;
    }
  });
});
