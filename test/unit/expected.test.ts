/** Expected accuracy of a skill, its range, and its part in mastery. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { defaultParameters, masteryThresholds } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, sigmoid } from '../../src/domain/base/common.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import {
  computeExpectedAccuracy,
  computeExpectedRange,
  isMastered,
} from '../../src/domain/learner/expected-accuracy.js';
import { expectedRangeConstants } from '../../src/domain/learner/learner-constants.js';
import { buildSkillView } from '../../src/domain/learner/skill-view.js';
import { hasSteadyMastery } from '../../src/domain/tracing/learner-states.js';
import { anAnswer, countAnswers } from '../support/builders/answers.js';
import { between, upTo } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { modelWith } from '../support/builders/study.js';

const startAt = 1_700_000_000_000;
const answers = upTo(
  60,
  fc.record({ isCorrect: fc.boolean(), occurredAt: fc.integer({ min: startAt, max: startAt + 90 * dayMs }) }),
).map((list) => list.sort((a, b) => a.occurredAt - b.occurredAt));

const now = startAt + 90 * dayMs;

function stateAfter(list: Parameters<typeof countAnswers>[0], model = unfittedModel, at = now) {
  const states = countAnswers(list, model);
  const view = buildSkillView('algebra', states.skills[0], model, at);
  return { states, view, ...computeExpectedAccuracy(view, states.learner, model, at) };
}

test('computeExpectedAccuracy returns the probability of a right answer on a question without difficulty', () => {
  forAll(answers, (list) => {
    const { states, expected } = stateAfter(list);
    const question = { occurredAt: now, questionDifficulty: null };
    assert.equal(expected, computeConditions(unfittedModel, ['algebra'], null, states, question).pCorrect);
  });
});

test('computeExpectedRange follows its formula within 0 to 1', () => {
  const { z, variance, perAnswer, priorAnswers } = expectedRangeConstants;
  forAll(between(-50, 50), fc.nat(1000), (logOdds, attempts) => {
    const reach = z * Math.sqrt(variance + perAnswer / (attempts + priorAnswers));
    const [low, high] = [sigmoid(logOdds - reach), sigmoid(logOdds + reach)];
    assert.deepEqual(computeExpectedRange(logOdds, attempts), { expected: sigmoid(logOdds), low, high });
  });
});

test('computeExpectedAccuracy never falls after a right answer, and is lower after a wrong one', () => {
  forAll(answers, (list) => {
    const expectedAfter = (isCorrect: boolean): number =>
      stateAfter([...list, { isCorrect, occurredAt: now }]).expected;
    const right = expectedAfter(true);
    assert.ok(right >= stateAfter(list).expected - 1e-12);
    assert.ok(expectedAfter(false) <= right);
  });
});

test('isMastered requires a steady mastery and a high expected accuracy', () => {
  forAll(answers, between(0.001, 0.6), (list, pSlip) => {
    const at = list.at(-1)?.occurredAt ?? now;
    const parameters = { ...defaultParameters, pSlip };
    const model = modelWith({ algebra: { parameters } });
    const { states, view, expected } = stateAfter(list, model, at);
    const level = Math.min(masteryThresholds.accuracy, 1 - pSlip);
    const isExpected = hasSteadyMastery(view.state, view.mastery) && expected >= level;
    assert.equal(isMastered(view, { learner: states.learner, model, now: at }), isExpected);
  });
  // With a guess of .001 one right answer in seven is strong evidence for mastery.
  const parameters = { ...defaultParameters, pLearn: 0.3, pGuess: 0.001, pSlip: 0.6 };
  const model = modelWith({ algebra: { parameters } });
  const rarelyRight = Array.from({ length: 42 }, (_, i) => ({ isCorrect: i % 7 === 6, occurredAt: now }));
  const { states, view, expected } = stateAfter(rarelyRight, model);
  assert.ok(hasSteadyMastery(view.state, view.mastery) && expected < 0.4, `${view.mastery}, ${expected}`);
  assert.equal(isMastered(view, { learner: states.learner, model, now }), false);
});

test('hasSteadyMastery requires five answers, however high mastery is', () => {
  const isSteadyAfter = (count: number): boolean => {
    const {
      skills: [skill],
    } = countAnswers(new Array(count).fill({ isCorrect: true }));
    assert.ok(skill.mastery >= masteryThresholds.mastery);
    return hasSteadyMastery(skill, skill.mastery);
  };
  assert.deepEqual([isSteadyAfter(4), isSteadyAfter(5)], [false, true]);
});

test('applyAnswer sets ready from the probability on an average question, not on an easy one', () => {
  const states = countAnswers(new Array(8).fill({ isCorrect: true }));
  const conditions = computeConditions(unfittedModel, ['algebra'], null, states, anAnswer);
  const readyAfter = (ready: boolean, pCorrect: number, itemDifficulty: number): boolean => {
    const before = { ...states, skills: [{ ...states.skills[0], ready }] as const };
    return applyAnswer(before, anAnswer, { ...conditions, pCorrect, itemDifficulty }).skills[0].ready;
  };
  assert.equal(readyAfter(false, 0.9, 0), true);
  assert.equal(readyAfter(false, 0.9, 2), false);
  assert.equal(readyAfter(false, 0.6, -2), true);
  assert.equal(readyAfter(true, 0.5, 0), true);
});
