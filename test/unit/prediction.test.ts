/** The served probability of a right answer: its features and its terms. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeFeatures, selectTerms } from '../../src/domain/answer/answer-conditions.js';
import { logit, sigmoid } from '../../src/domain/base/common.js';
import { predictionConstants } from '../../src/domain/base/prediction-constants.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import {
  type ItemModel,
  resolveQuestionModel,
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { localRunner, type StageRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant } from '../../src/domain/fit/fit-tenant.js';
import { buildItemModel } from '../../src/domain/fit/prediction/replay-log.js';
import { formatTerms } from '../../src/domain/learner/explanation.js';
import {
  type FeatureInput,
  type FeatureName,
  features,
  findColumn,
  rowWidth,
  runColumn,
  skillColumns,
  writeFeatures,
} from '../../src/domain/prediction/features.js';
import {
  buildInitialTerms,
  buildUnseenTerms,
  computeFirstLogOdds,
  computeItemDifficulty,
  explainPrediction,
  type ItemCounts,
  initialPredictionModel,
  itemTermCount,
  logOddsWithoutItem,
  type PredictionTerms,
  predict,
  skillTermCount,
  streakCount,
  type Term,
} from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms, skillPairWidth } from '../../src/domain/prediction/related-terms.js';
import { newCourse } from '../../src/domain/tracing/course.js';
import {
  itemPatternCount,
  newItemTrace,
  newLearnerTrace,
  newSkillTrace,
  type Traces,
  updateTraces,
} from '../../src/domain/tracing/traces.js';
import { computeSum, indices } from '../../src/lists.js';
import { answerLog, fullFitInput } from '../support/builders/answer-logs.js';
import { anAnswer, createLearner } from '../support/builders/answers.js';
import { anyParameters, between, rounding, upTo } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { seeded } from '../support/builders/random.js';
import { roundsOf } from '../support/runner/long-form.js';

interface Logged {
  readonly skill: number;
  /** From 1. 0: no item. */
  readonly item: number;
  readonly correct: boolean;
  readonly at: number;
}

const [skillCount, itemCount] = [3, 6];
const skillOfItem = (item: number): number => (item - 1) % skillCount;
const skillIdOf = (skill: number): string => `skill ${skill}`;
const itemIdOf = (item: number): string | null => (item === 0 ? null : `item ${item}`);

const answer = fc.tuple(
  fc.integer({ min: 0, max: itemCount }),
  fc.boolean(),
  fc.integer({ min: 0, max: 200_000 }),
);
const history: fc.Arbitrary<Logged[]> = fc
  .array(answer, { minLength: 1, maxLength: 40, size: 'max' })
  .map((answers) => {
    let at = 1.7e12;
    return answers.map(([item, correct, seconds]) => {
      at += seconds < 100_000 ? 0 : (seconds - 100_000) * 1000 + 7;
      return { skill: item === 0 ? 0 : skillOfItem(item), item, correct, at };
    });
  });

interface Served {
  readonly model: TenantModel;
  readonly items?: Map<string, ItemModel>;
}

const firstStreak = 1 + skillColumns.length;

/** Any terms of a skill with rising streaks, as a fit ensures. */
function drawSkillTerms(draw: () => number): number[] {
  const terms = Array.from({ length: skillTermCount }, draw);
  const streaks = terms.slice(firstStreak, firstStreak + streakCount).sort((a, b) => a - b);
  return terms.toSpliced(firstStreak, streakCount, ...streaks);
}

/** Any weights with the signs of their features, and any slopes. */
const legalModel: fc.Arbitrary<Served> = fc
  .record({ seed: fc.integer(), size: between(0, 3) })
  .map(({ seed, size }) => {
    const random = seeded(seed);
    const draw = (): number => (random() - 0.5) * size;
    const drawn = (length: number): number[] => Array.from({ length }, draw);
    const relatedTo = (ids: readonly string[], width: number) => ({
      keys: ids.map(hashKey).sort((a, b) => a - b),
      terms: drawn(width * ids.length),
    });
    const skillIds = indices(skillCount).map(skillIdOf);
    const skills = skillIds.map((skillId) => {
      const related = relatedTo(skillIds, skillPairWidth);
      const skill = { ...resolveSkillModel(unfittedModel, skillId), terms: drawSkillTerms(draw), related };
      return [skillId, skill] as const;
    });
    const items = indices(itemCount).map((i) => {
      const counts = { answers: 20, right: Math.floor(21 * random()), expected: 20 * random() };
      const terms = { terms: drawn(itemTermCount), before: relatedTo(['item 1', 'item 2', 'item 5'], 1) };
      return [`item ${i + 1}`, { ...counts, ...terms, abilityOffset: draw() }] as const;
    });
    const prediction = {
      bias: draw(),
      weights: features.map(({ sign }) => (sign === 0 ? draw() : sign * Math.abs(draw()))),
      means: features.map(draw),
      runs: drawn(8),
      streaks: drawn(streakCount).sort((a, b) => a - b),
      patterns: drawn(itemPatternCount),
      itemPriorAnswers: 10,
      itemScale: 1,
    };
    return { model: { ...unfittedModel, skills: new Map(skills), prediction }, items: new Map(items) };
  });

/** Checks the predictions of all other items of the skill before and after every answer. */
function assertMonotone(answers: readonly Logged[], { model, items }: Served): void {
  const learner = createLearner(model, items);
  for (const { skill, item, correct, at } of answers) {
    const others = [0, 1, 2, 3, 4, 5, 6].filter(
      (other) => other === 0 || (other !== item && skillOfItem(other) === skill),
    );
    const predictOthers = (): number[] =>
      others.map((other) => learner.predict(skillIdOf(skill), itemIdOf(other), at));
    const before = predictOthers();
    learner.answer(skillIdOf(skill), itemIdOf(item), { isCorrect: correct, occurredAt: at });
    for (const [i, after] of predictOthers().entries()) {
      const change = after - (before[i] as number);
      assert.ok((correct ? -change : change) <= rounding, `item ${others[i]} changed by ${change}`);
    }
  }
}

test('A right answer lowers no prediction of another item of the skill, and a wrong answer raises none', () => {
  forAll(history, (answers) => assertMonotone(answers, { model: unfittedModel }));
  forAll(history, legalModel, assertMonotone);
});

/** Publishes every part of a fit: each trial reports a lower loss than the one before. */
function publishingRunner(): StageRunner {
  let loss = 0;
  return {
    threads: 1,
    run: async (name, ...args) => {
      const result = await localRunner.run(name, ...args);
      if (name !== 'extendCrossFold') return result;
      loss -= 1;
      return loss as typeof result;
    },
  };
}

/** Questions of one skill and of several. */
const skillSets = [
  ['skill 0'],
  ['skill 1'],
  ['skill 0', 'skill 1'],
  ['skill 1', 'skill 2'],
  ['skill 0', 'skill 2', 'skill 1'],
];

test('A right answer lowers no prediction of a question with the same skills, and a wrong answer raises none', () => {
  const set = fc.constantFrom(...(skillSets as [string, ...string[]][]));
  const answers = upTo(30, fc.tuple(set, fc.boolean(), fc.nat(2e6)));
  const anyModel: fc.Arbitrary<Served> = fc.oneof(fc.constant({ model: unfittedModel }), legalModel);
  forAll(answers, anyModel, (list, { model }) => {
    const learner = createLearner(model);
    let at = 1.7e12;
    for (const [asked, isCorrect, pause] of list) {
      at += Math.max(0, 1000 * (pause - 1e6));
      // For other combinations of its skills, the answer is also a pause since their last answer.
      const before = learner.predict(asked, null, at);
      learner.answer(asked, null, { isCorrect, occurredAt: at });
      const change = learner.predict(asked, null, at) - before;
      assert.ok((isCorrect ? -change : change) <= rounding, `${asked} changed by ${change}`);
    }
  });
});

test('A fit yields monotone predictions from any log', async () => {
  const log = fc.array(history, { minLength: 1, maxLength: 12, size: 'max' });
  await fc.assert(
    fc.asyncProperty(log, history, async (learners, answers) => {
      const log = answerLog(skillCount, learners, itemCount);
      const { model, items } = await fitTenant(fullFitInput(log), publishingRunner());
      assert.ok(items !== null);
      const itemModels = indices(itemCount).map((i) => {
        const item = buildItemModel(items, i + 1, (number) => hashKey(`item ${number}`));
        return [`item ${i + 1}`, item] as const;
      });
      assertMonotone(answers, { model, items: new Map(itemModels) });
    }),
    { numRuns: roundsOf(10, 30) },
  );
});

test('explainPrediction returns terms that add up to the log-odds of the prediction', () => {
  forAll(history, legalModel, (answers, { model, items }) => {
    const learner = createLearner(model, items);
    for (const { skill, item, correct, at } of answers)
      learner.answer(skillIdOf(skill), itemIdOf(item), { isCorrect: correct, occurredAt: at });
    const { skill, item, at } = answers.at(-1) as Logged;
    const [skillId, itemId] = [skillIdOf(skill), itemIdOf(item)];
    const questionModel = resolveQuestionModel(model, [skillId]);
    const terms = selectTerms(model, questionModel.combined, items?.get(`${itemId}`) ?? null);
    const question = { ...anAnswer, occurredAt: at };
    const row = Float64Array.from(
      computeFeatures(questionModel, 0, learner.statesOf(skillId, itemId), question),
    );
    const explained = explainPrediction(model.prediction, terms, row);
    const sum = computeSum(explained.map(({ logits }) => logits));
    assert.ok(Math.abs(sigmoid(sum) - learner.predict(skillId, itemId, at)) < 1e-9);
    const withoutItem = logOddsWithoutItem(model.prediction, terms, row, 0);
    assert.ok(Math.abs(sum - terms.itemDifficulty - withoutItem) < 1e-9);
    assertFormatted(explained, row);
  });
});

/** Checks that the rounded terms add up, and that each sentence states the direction of its term. */
function assertFormatted(terms: readonly Term[], row: Float64Array): void {
  const formatted = formatTerms(terms, row);
  const tenThousandths = (value: number): number => Math.round(value * 1e4);
  const sum = formatted.terms.reduce((total, { logits }) => total + tenThousandths(logits), 0);
  assert.equal(sum, tenThousandths(formatted.logOdds));
  for (const { name, logits, text } of formatted.terms) {
    const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
    assert.match(text, new RegExp(`^[A-Z][^:.]+: this ${effect} the chance\\.$`), name);
    assert.ok(text.length <= 150 && !/NaN|Infinity|undefined|-/.test(text), text);
  }
}

const firstTraces: Traces = { learner: newLearnerTrace, skills: [newSkillTrace], item: newItemTrace };

/** A question of a learner without answers. */
const firstInput: FeatureInput = {
  traces: firstTraces,
  skills: { attempts: 0, correct: 0, trace: newSkillTrace },
  keys: { skill: 1, item: 1 },
  bktProbability: 0.41,
  answerNumber: 1,
  occurredAt: 1.7e12,
  difficulty: null,
  bias: 0,
};

function rowOf(input: Partial<FeatureInput>): Float64Array {
  const row = new Float64Array(rowWidth);
  writeFeatures(row, 0, { ...firstInput, ...input });
  return row;
}

const noTerms: PredictionTerms = {
  skill: buildUnseenTerms(initialPredictionModel),
  item: null,
  related: emptyRelatedTerms,
  itemsBefore: emptyRelatedTerms,
  itemDifficulty: 0,
};

test('The initial prediction model predicts the first answer as BKT does', () => {
  forAll(anyParameters, (own) => {
    const bktProbability = sigmoid(computeFirstLogOdds(own));
    const terms = { ...noTerms, skill: buildInitialTerms(own) };
    const pCorrect = predict(initialPredictionModel, terms, rowOf({ bktProbability }));
    assert.ok(Math.abs(pCorrect - bktProbability) < 1e-9);
  });
});

test('The initial prediction model predicts fewer right answers on harder questions', () => {
  const p = (difficulty: number) => predict(initialPredictionModel, noTerms, rowOf({ difficulty }));
  assert.ok(p(-3) > p(0) && p(0) > p(0.1) && p(0.1) > p(3));
});

test('writeFeatures writes only the BKT feature for a learner without answers', () => {
  const row = rowOf({});
  assert.ok(Math.abs((row[0] as number) - logit(0.41)) < 1e-9);
  assert.ok(row.subarray(1).every((value) => value === 0));
});

test('writeFeatures writes every feature into the column of its name', () => {
  const occurredAt = 1.7e12;
  const seconds = occurredAt / 1000;
  const row = rowOf({
    traces: {
      learner: {
        ...newLearnerTrace,
        ...{ ability: 0.7, recent: 0.2, slow: 0.1, right: 3, wrong: 2, wrongRun: 1 },
        course: { ...newCourse, firstAbility: 0.25, firstForm: 0.125, retryAbility: 9, retryForm: 9 },
        lastRightAt: occurredAt - 4 * 60_000,
      },
      item: { right: 2, wrong: 1, wrongRun: 0, wrongBits: 0b010, otherSkillAnswers: 1, at: seconds - 60 },
    },
    skills: {
      ...{ attempts: 4, correct: 2 },
      trace: {
        residual: -0.4,
        lastAnswerNumber: 5,
        lastRightNumber: 5,
        lastRightAt: seconds - 120,
        streak: 2,
      },
    },
    ...{ answerNumber: 9, occurredAt, difficulty: 1.5 },
  });
  const [ln2, ln3, ln4] = [Math.LN2, Math.log(3), Math.log(4)];
  const expected: Record<FeatureName, number> = {
    ...{ bkt: logit(0.41), easiness: -1.5 },
    // The learner.
    ...{ ability: 0.7, recentAnswers: 0.2, slowAnswers: 0.1, wrongRun: ln2 },
    ...{ rightAnswers: ln4, wrongAnswers: ln3, timeSinceRight: Math.log(5) },
    ...{ firstTryAbility: 0.25, recentFirstTries: 0.125, retryAbility: 0, recentRetries: 0 },
    // The skill.
    ...{ skillResidual: -0.4, everRightOnSkill: 1, rightOnSkill: ln3 },
    ...{ answersSinceRightOnSkill: ln4, timeSinceRightOnSkill: ln3 },
    ...{ lastRightByAnswers: 1 / 4, lastRightByTime: 1 / (1 + ln3) },
    // The item.
    ...{ rightOnItem: ln3, wrongOnItem: ln2, lastOnItem: 1, itemSeen: 1, itemRetry: 0 },
    ...{ itemLag: ln4, itemLagIfRight: ln4, itemTime: ln2, itemTimeIfRight: ln2 },
  };
  for (const [name, value] of Object.entries(expected)) {
    const found = row[findColumn(name as FeatureName)] as number;
    assert.ok(Math.abs(found - value) < 1e-9, `${name}: ${found}, not ${value}`);
  }
});

test('writeFeatures marks a retry of an item until the learner answers another skill', () => {
  const item = { right: 0, wrong: 3, wrongRun: 3, wrongBits: 7, otherSkillAnswers: 2, at: 1.7e9 };
  const traces = { ...firstInput.traces, item };
  const retry = (answerNumber: number, skillAttempts: number) => {
    const skills = { ...firstInput.skills, attempts: skillAttempts };
    const row = rowOf({ traces, answerNumber, skills });
    return [row[findColumn('itemRetry')], row[runColumn], row[findColumn('lastOnItem')]];
  };
  assert.deepEqual(retry(6, 3), [1, 3, -1]);
  assert.deepEqual(retry(9, 6), [1, 3, -1]);
  assert.deepEqual(retry(7, 3), [0, 3, -1]);
});

const { keys } = firstInput;

test('updateTraces counts answers, runs, item patterns and the last right answer', () => {
  const right = updateTraces(firstTraces, keys, { isCorrect: true, occurredAt: 61_999 }, 1, 0, 0);
  const { residual } = right.skills[0];
  assert.deepEqual(
    [right.skills[0], right.item, right.learner.lastRightAt],
    [
      { residual, lastAnswerNumber: 1, lastRightNumber: 1, lastRightAt: 61, streak: 1 },
      { right: 1, wrong: 0, wrongRun: 0, wrongBits: 0, otherSkillAnswers: 0, at: 61 },
      61_999,
    ],
  );
  const wrong = updateTraces(right, keys, { isCorrect: false, occurredAt: 50_000 }, 5, 1, 0);
  const {
    learner,
    skills: [skill],
  } = wrong;
  assert.deepEqual([learner.right, learner.wrong, learner.wrongRun], [1, 1, 1]);
  assert.deepEqual([skill.lastAnswerNumber, skill.lastRightNumber, skill.lastRightAt], [5, 1, 61]);
  assert.deepEqual(wrong.item, {
    ...{ right: 1, wrong: 1, wrongRun: 1, wrongBits: 1, otherSkillAnswers: 3, at: 61 },
  });
  const withoutItem = { ...firstTraces, item: null };
  assert.equal(updateTraces(withoutItem, keys, { isCorrect: true, occurredAt: 0 }, 1, 0, 0).item, null);
});

test('updateTraces moves the ability with each answer and keeps all traces within their limits', () => {
  const { abilityBound, residualBound, abilityVariance } = predictionConstants;
  forAll(upTo(300, fc.tuple(fc.boolean(), between(-8, 8))), (given) => {
    let traces = firstTraces;
    for (const [i, [isCorrect, offset]] of given.entries()) {
      const after = updateTraces(traces, keys, { isCorrect, occurredAt: 1000 * i }, i + 1, i, offset);
      const step = after.learner.ability - traces.learner.ability;
      assert.ok(isCorrect ? step >= 0 : step <= 0);
      traces = after;
    }
    const {
      learner,
      skills: [skill],
      item,
    } = traces;
    assert.ok(Math.abs(learner.ability) <= abilityBound && Math.abs(skill.residual) <= residualBound);
    assert.ok(learner.variance > 0 && learner.variance <= abilityVariance);
    assert.ok((item?.right ?? 0) <= 255 && (item?.wrongRun ?? 0) <= 8);
  });
});

test('computeItemDifficulty rises with right answers and shrinks to 0 for items with few answers', () => {
  const termOf = (counts: ItemCounts, itemPriorAnswers = 10): number =>
    computeItemDifficulty(counts, { ...initialPredictionModel, itemPriorAnswers });
  assert.equal(termOf({ answers: 0, right: 0, expected: 0 }), 0);
  const counts = fc.integer({ min: 1, max: 500 }).chain((answers) =>
    fc.record({
      answers: fc.constant(answers),
      right: fc.integer({ min: 0, max: answers }),
      expected: between(0, answers),
    }),
  );
  forAll(counts, (own) => {
    const term = termOf(own);
    assert.ok(Number.isFinite(term) && Math.abs(term) < 14);
    if (own.right < own.answers) assert.ok(termOf({ ...own, right: own.right + 1 }) >= term);
  });
  const one = { answers: 1, right: 1, expected: 0.6 };
  assert.ok(termOf(one) > 0 && termOf(one) < 0.5 && termOf(one, 1000) < 0.01);
  assert.ok(termOf({ answers: 100, right: 100, expected: 60 }) > 2);
});
