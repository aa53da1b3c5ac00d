/** Expected accuracy of a skill: the served probability of an average question, its range, and mastery that needs it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
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
import { modelWith } from '../support/builders/study.js';

const startAt = 1_700_000_000_000;
const answers = upTo(
  60,
  fc.record({ isCorrect: fc.boolean(), occurredAt: fc.integer({ min: startAt, max: startAt + 90 * dayMs }) }),
).map((list) => list.sort((a, b) => a.occurredAt - b.occurredAt));

const now = startAt + 90 * dayMs;

function stateAfter(list: Parameters<typeof countAnswers>[0], model = unfittedModel, at = now) {
  const states = countAnswers(list, model);
  const view = buildSkillView('algebra', states.skill, model, at);
  return { states, view, ...computeExpectedAccuracy(view, states.learner, model, at) };
}

test('the expected accuracy is the probability that an answer on an unknown question is counted with', () => {
  fc.assert(
    fc.property(answers, (list) => {
      const { states, expected } = stateAfter(list);
      const question = { occurredAt: now, questionDifficulty: null };
      assert.equal(expected, computeConditions(unfittedModel, 'algebra', null, states, question).pCorrect);
    }),
  );
});

test('the range holds the expected accuracy, inside 0 to 1, and narrows with answers', () => {
  fc.assert(
    fc.property(
      between(-50, 50),
      fc.nat(1000),
      fc.integer({ min: 1, max: 1000 }),
      (logOdds, attempts, more) => {
        const [few, many] = [
          computeExpectedRange(logOdds, attempts),
          computeExpectedRange(logOdds, attempts + more),
        ];
        assert.ok(0 <= few.low && few.low <= few.expected && few.expected <= few.high && few.high <= 1);
        assert.ok(few.low <= many.low && many.high <= few.high);
      },
    ),
  );
});

test('the range follows its formula', () => {
  const { z, variance, perAnswer, priorAnswers } = expectedRangeConstants;
  const reach = z * Math.sqrt(variance + perAnswer / (8 + priorAnswers));
  assert.deepEqual(computeExpectedRange(0.4, 8), {
    expected: sigmoid(0.4),
    low: sigmoid(0.4 - reach),
    high: sigmoid(0.4 + reach),
  });
});

test('a right answer never lowers the expected accuracy, and a wrong one leaves no higher one', () => {
  fc.assert(
    fc.property(answers, (list) => {
      const [before, right, wrong] = [
        stateAfter(list),
        ...[true, false].map((isCorrect) => stateAfter([...list, { isCorrect, occurredAt: now }])),
      ] as const;
      assert.ok(
        (right?.expected ?? 0) >= before.expected - 1e-12,
        `${before.expected} to ${right?.expected}`,
      );
      assert.ok((wrong?.expected ?? 1) <= (right?.expected ?? 0));
    }),
  );
});

test('a skill is mastered if mastery is steady and enough answers are expected to be right', () => {
  fc.assert(
    fc.property(answers, between(0.001, 0.6), (list, pSlip) => {
      const parameters = { ...defaultParameters, pSlip };
      const model = modelWith({ algebra: { parameters } });
      const { states, view, expected } = stateAfter(list, model, list.at(-1)?.occurredAt ?? now);
      const level = Math.min(masteryThresholds.accuracy, 1 - pSlip);
      assert.equal(
        isMastered(view, { learner: states.learner, model, now: list.at(-1)?.occurredAt ?? now }),
        hasSteadyMastery(view.state, view.mastery) && expected >= level,
      );
    }),
  );
});

test('few right answers do not make a skill mastered, however high its mastery', () => {
  // A skill that is seldom answered right without being known: one right answer in seven is strong evidence.
  const parameters = { ...defaultParameters, pLearn: 0.3, pGuess: 0.001, pSlip: 0.6 };
  const model = modelWith({ algebra: { parameters } });
  const list = Array.from({ length: 42 }, (_, i) => ({ isCorrect: i % 7 === 6, occurredAt: now }));
  const { states, view, expected } = stateAfter(list, model);
  assert.ok(hasSteadyMastery(view.state, view.mastery) && expected < 0.4, `${view.mastery}, ${expected}`);
  assert.equal(isMastered(view, { learner: states.learner, model, now }), false);
});

test('an answer makes a skill ready if an average question, not the easy one asked, was likely to be right', () => {
  const states = countAnswers(new Array(8).fill({ isCorrect: true }));
  const conditions = computeConditions(unfittedModel, 'algebra', null, states, anAnswer);
  const readyAfter = (ready: boolean, pCorrect: number, itemDifficulty: number): boolean => {
    const before = { ...states, skill: { ...states.skill, ready } };
    return applyAnswer(before, anAnswer, { ...conditions, pCorrect, itemDifficulty }).skill.ready;
  };
  assert.deepEqual(
    [
      readyAfter(false, 0.9, 0),
      readyAfter(false, 0.9, 2),
      readyAfter(false, 0.6, -2),
      readyAfter(true, 0.5, 0),
    ],
    [true, false, true, true],
  );
});
