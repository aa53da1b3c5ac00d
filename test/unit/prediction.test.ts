/** The served probability of a right answer: its features, its terms and the fit of its weights. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AnswerLog,
  type LearnerSelection,
  selectAllLearners,
  selectLearners,
} from '../../src/domain/base/answer-log.js';
import { type BktParameters, defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { logit, sigmoid } from '../../src/domain/base/common.js';
import { predictionConstants } from '../../src/domain/base/prediction-constants.js';
import { computeAbilityOffset, fitOffsets } from '../../src/domain/fit/prediction/ability-offsets.js';
import { identityCalibration } from '../../src/domain/fit/prediction/cross-fit.js';
import { createFitMemory } from '../../src/domain/fit/prediction/fit-memory.js';
import { buildPrediction, type FittedPrediction } from '../../src/domain/fit/prediction/fitted-prediction.js';
import { buildSweepSteps, partNames } from '../../src/domain/fit/prediction/model-parts.js';
import { moveRanges, runStep } from '../../src/domain/fit/prediction/newton-steps.js';
import { readRelatedTerms } from '../../src/domain/fit/prediction/pair-tables.js';
import {
  createFeatureStore,
  type FeatureStore,
  replayLearners,
} from '../../src/domain/fit/prediction/replay-log.js';
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
  type PredictionModel,
  type PredictionTerms,
  predict,
  skillTermCount,
  streakCount,
  type Term,
} from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms, skillPairWidth } from '../../src/domain/prediction/related-terms.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { newCourse } from '../../src/domain/tracing/course.js';
import {
  type ItemTrace,
  itemPatternCount,
  newItemTrace,
  newLearnerTrace,
  newSkillTrace,
  updateTraces,
} from '../../src/domain/tracing/traces.js';
import { answerLog } from '../support/builders/answer-logs.js';
import { between, rounding, upTo } from '../support/builders/arbitraries.js';
import { seeded } from '../support/builders/random.js';
import { roundsOf } from '../support/runner/long-form.js';

interface Logged {
  readonly skill: number;
  readonly item: number;
  readonly correct: boolean;
  readonly at: number;
}

type FindTerms = (skill: number, item: number) => PredictionTerms;

const skillCount = 3;
const itemCount = 6;
const skillOfItem = (item: number): number => (item - 1) % skillCount;

/** Features of a log under the default parameters of BKT. */
function replayAll(log: AnswerLog): FeatureStore {
  const store = createFeatureStore(log);
  const skills = Array.from({ length: log.skills }, () => ({
    parameters: defaultParameters,
    difficultyMean: 0,
  }));
  replayLearners(log, 0, log.starts.length - 1, { skills, difficultyScale: 0 }, fitOffsets(log), store);
  return store;
}

interface Fitted extends FittedPrediction {
  readonly itemCounts: readonly ItemCounts[];
}

const noAnswers: ItemCounts = { answers: 0, right: 0, expected: 0 };

/** @param learners the first ones of the log */
function fitOn(log: AnswerLog, learners: LearnerSelection, store: FeatureStore): Fitted {
  const { sweeps, freshSweeps } = predictionConstants.fit;
  const { itemVariance } = fitOffsets(log, learners);
  const memory = createFitMemory(log, learners, store, itemVariance);
  moveRanges(memory, 'weights', 0, memory.ranges);
  for (let sweep = 0; sweep < sweeps; sweep++)
    for (const step of buildSweepSteps(partNames, sweep < freshSweeps)) runStep(memory, step);
  const fitted = buildPrediction(memory, itemVariance, identityCalibration);
  const itemCounts = Array.from({ length: log.items + 1 }, () => ({ ...noAnswers }));
  const end = learners.indexOf(0);
  const answers = log.starts[end < 0 ? log.starts.length - 1 : end] as number;
  for (let i = 0; i < answers; i++) {
    const item = log.item[i] as number;
    const counts = itemCounts[item] as { answers: number; right: number; expected: number };
    const terms = findTerms({ ...fitted, itemCounts: [] }, log.skill[i] as number, item);
    counts.answers++;
    counts.right += log.correct[i] as number;
    counts.expected += sigmoid(logOddsWithoutItem(fitted.model, terms, store.rows, i * rowWidth));
  }
  return { ...fitted, itemCounts };
}

const fitAll = (log: AnswerLog): Fitted => fitOn(log, selectAllLearners(log), replayAll(log));

function findTerms(fitted: Fitted, skill: number, item: number): PredictionTerms {
  const { model, skillTerms, itemTerms, pairs, itemPairs, itemCounts } = fitted;
  const shared = {
    skill: skillTerms.subarray(skill * skillTermCount, (skill + 1) * skillTermCount),
    related: readRelatedTerms(pairs, skill),
  };
  if (item === 0) return { ...shared, item: null, itemsBefore: emptyRelatedTerms, itemDifficulty: 0 };
  return {
    ...shared,
    item: itemTerms.subarray(item * itemTermCount, (item + 1) * itemTermCount),
    itemsBefore: readRelatedTerms(itemPairs, item),
    itemDifficulty: computeItemDifficulty(itemCounts[item] ?? noAnswers, model),
  };
}

/** One learner as the service keeps it, without a store. */
function newLearnerHistory() {
  let learner = newLearnerTrace;
  let answers = 0;
  const fresh = { trace: newSkillTrace, attempts: 0, right: 0, mastery: defaultParameters.pInit };
  const skills = new Map<number, typeof fresh>();
  const items = new Map<number, ItemTrace>();
  const tracesOf = (skill: number, item: number) => ({
    learner,
    skill: (skills.get(skill) ?? fresh).trace,
    item: item === 0 ? null : (items.get(item) ?? newItemTrace),
  });
  return {
    row(skill: number, item: number, occurredAt: number): Float64Array {
      const { attempts, right, mastery } = skills.get(skill) ?? fresh;
      const { pGuess, pSlip } = defaultParameters;
      return rowOf({
        traces: tracesOf(skill, item),
        keys: { skill: skill + 1, item },
        bktProbability: mastery * (1 - pSlip) + (1 - mastery) * pGuess,
        skillAttempts: attempts,
        skillRight: right,
        answerNumber: answers + 1,
        occurredAt,
      });
    },
    answer({ skill, item, correct, at }: Logged): void {
      const own = skills.get(skill) ?? fresh;
      const answer = { isCorrect: correct, occurredAt: at };
      const keys = { skill: skill + 1, item };
      const after = updateTraces(tracesOf(skill, item), keys, answer, ++answers, own.attempts, 0.3);
      learner = after.learner;
      skills.set(skill, {
        trace: after.skill,
        attempts: own.attempts + 1,
        right: own.right + (correct ? 1 : 0),
        mastery: traceAnswer(defaultParameters, own.mastery, correct).masteryAfter,
      });
      if (after.item !== null) items.set(item, after.item);
    },
  };
}

/** A question of a learner without answers. */
const firstInput: FeatureInput = {
  traces: { learner: newLearnerTrace, skill: newSkillTrace, item: newItemTrace },
  keys: { skill: 1, item: 1 },
  bktProbability: 0.41,
  skillAttempts: 0,
  skillRight: 0,
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

const firstStreak = 1 + skillColumns.length;

/** Any terms of a skill with rising streaks, as a fit ensures. */
function drawSkillTerms(draw: () => number): number[] {
  const terms = Array.from({ length: skillTermCount }, draw);
  const streaks = terms.slice(firstStreak, firstStreak + streakCount).sort((a, b) => a - b);
  return terms.toSpliced(firstStreak, streakCount, ...streaks);
}

/** Any weights with the signs of their features, and any slopes. */
const legalModel: fc.Arbitrary<{ model: PredictionModel; terms: FindTerms }> = fc
  .record({ seed: fc.integer(), size: between(0, 3) })
  .map(({ seed, size }) => {
    const random = seeded(seed);
    const draw = (): number => (random() - 0.5) * size;
    const drawn = (length: number): number[] => Array.from({ length }, draw);
    const terms = new Map<string, PredictionTerms>();
    for (let skill = 0; skill < skillCount; skill++) {
      const own = {
        skill: drawSkillTerms(draw),
        related: { keys: [1, 2, 3], terms: drawn(3 * skillPairWidth) },
      };
      for (let item = 0; item <= itemCount; item++)
        terms.set(`${skill} ${item}`, {
          ...own,
          item: item === 0 ? null : drawn(itemTermCount),
          itemsBefore: { keys: [1, 2, 5], terms: drawn(3) },
          itemDifficulty: item === 0 ? 0 : draw(),
        });
    }
    return {
      model: {
        bias: draw(),
        weights: features.map(({ sign }) => (sign === 0 ? draw() : sign * Math.abs(draw()))),
        means: features.map(draw),
        runs: drawn(8),
        streaks: drawn(streakCount).sort((a, b) => a - b),
        patterns: drawn(itemPatternCount),
        itemPriorAnswers: 10,
        itemScale: 1,
      },
      terms: (skill, item) => terms.get(`${skill} ${item}`) as PredictionTerms,
    };
  });

const noTerms: PredictionTerms = {
  skill: buildUnseenTerms(initialPredictionModel),
  item: null,
  related: emptyRelatedTerms,
  itemsBefore: emptyRelatedTerms,
  itemDifficulty: 0,
};

/** Checks the predictions of all other items of the skill before and after every answer. */
function assertMonotone(answers: readonly Logged[], model: PredictionModel, terms: FindTerms): void {
  const learner = newLearnerHistory();
  for (const answer of answers) {
    const others = [0, 1, 2, 3, 4, 5, 6].filter(
      (item) => item === 0 || (item !== answer.item && skillOfItem(item) === answer.skill),
    );
    const predictOthers = (): number[] =>
      others.map((item) =>
        predict(model, terms(answer.skill, item), learner.row(answer.skill, item, answer.at)),
      );
    const before = predictOthers();
    learner.answer(answer);
    for (const [i, after] of predictOthers().entries()) {
      const change = after - (before[i] as number);
      assert.ok((answer.correct ? -change : change) <= rounding, `item ${others[i]} changed by ${change}`);
    }
  }
}

test('A right answer lowers no prediction of another item of the skill, and a wrong answer raises none', () => {
  fc.assert(
    fc.property(history, (answers) => assertMonotone(answers, initialPredictionModel, () => noTerms)),
  );
  fc.assert(
    fc.property(history, legalModel, (answers, { model, terms }) => assertMonotone(answers, model, terms)),
  );
});

test('A fit yields monotone predictions from any log', () => {
  const log = fc.array(history, { minLength: 1, maxLength: 12, size: 'max' });
  fc.assert(
    fc.property(log, history, (learners, answers) => {
      const fitted = fitAll(answerLog(skillCount, learners, itemCount));
      assertMonotone(answers, fitted.model, (skill, item) => findTerms(fitted, skill, item));
    }),
    { numRuns: roundsOf(10, 30) },
  );
});

test('explainPrediction returns terms that add up to the log-odds of the prediction', () => {
  fc.assert(
    fc.property(history, legalModel, (answers, { model, terms }) => {
      const learner = newLearnerHistory();
      for (const answer of answers) learner.answer(answer);
      const { skill, item, at } = answers.at(-1) as Logged;
      const row = learner.row(skill, item, at);
      const own = terms(skill, item);
      const explained = explainPrediction(model, own, row);
      const sum = explained.reduce((total, { logits }) => total + logits, 0);
      assert.ok(Math.abs(sigmoid(sum) - predict(model, own, row)) < 1e-9);
      assert.ok(Math.abs(sum - own.itemDifficulty - logOddsWithoutItem(model, own, row, 0)) < 1e-9);
      assertFormatted(explained, row);
    }),
  );
});

/** Checks that the rounded terms add up, and that each sentence states the direction of its term. */
function assertFormatted(terms: readonly Term[], row: Float64Array): void {
  const formatted = formatTerms(terms, row);
  const tenThousandths = (value: number): number => Math.round(value * 1e4);
  assert.equal(
    formatted.terms.reduce((sum, { logits }) => sum + tenThousandths(logits), 0),
    tenThousandths(formatted.logOdds),
  );
  for (const { name, logits, text } of formatted.terms) {
    const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
    assert.match(text, new RegExp(`^[A-Z][^:.]+: this ${effect} the chance\\.$`), name);
    assert.ok(text.length <= 150 && !/NaN|Infinity|undefined|-/.test(text), text);
  }
}

test('The initial prediction model predicts the first answer as BKT does', () => {
  const probability = between(0.02, 0.45);
  const parameters = fc.record({
    pInit: probability,
    pLearn: probability,
    pGuess: probability,
    pSlip: probability,
    pForget: between(0, 0.1),
  });
  fc.assert(
    fc.property(parameters, (own: BktParameters) => {
      const bktProbability = sigmoid(computeFirstLogOdds(own));
      const terms = { ...noTerms, skill: buildInitialTerms(own) };
      const pCorrect = predict(initialPredictionModel, terms, rowOf({ bktProbability }));
      assert.ok(Math.abs(pCorrect - bktProbability) < 1e-9);
    }),
  );
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
  const row = rowOf({
    traces: {
      learner: {
        ...newLearnerTrace,
        ...{ ability: 0.7, recent: 0.2, slow: 0.1, right: 3, wrong: 2, wrongRun: 1 },
        course: { ...newCourse, firstAbility: 0.25, firstForm: 0.125, retryAbility: 9, retryForm: 9 },
        lastRightAt: occurredAt - 4 * 60_000,
      },
      skill: {
        residual: -0.4,
        lastAnswerNumber: 5,
        lastRightNumber: 5,
        lastRightAt: occurredAt / 1000 - 120,
        streak: 2,
      },
      item: {
        right: 2,
        wrong: 1,
        wrongRun: 0,
        wrongBits: 0b010,
        otherSkillAnswers: 1,
        at: occurredAt / 1000 - 60,
      },
    },
    skillAttempts: 4,
    skillRight: 2,
    answerNumber: 9,
    occurredAt,
    difficulty: 1.5,
  });
  const expected: Record<FeatureName, number> = {
    bkt: logit(0.41),
    ability: 0.7,
    skillResidual: -0.4,
    recentAnswers: 0.2,
    slowAnswers: 0.1,
    wrongRun: Math.LN2,
    rightAnswers: Math.log(4),
    wrongAnswers: Math.log(3),
    timeSinceRight: Math.log(5),
    everRightOnSkill: 1,
    rightOnSkill: Math.log(3),
    answersSinceRightOnSkill: Math.log(4),
    timeSinceRightOnSkill: Math.log(3),
    lastRightByAnswers: 1 / 4,
    lastRightByTime: 1 / (1 + Math.log(3)),
    rightOnItem: Math.log(3),
    wrongOnItem: Math.LN2,
    lastOnItem: 1,
    itemSeen: 1,
    itemLag: Math.log(4),
    itemLagIfRight: Math.log(4),
    itemTime: Math.LN2,
    itemTimeIfRight: Math.LN2,
    itemRetry: 0,
    easiness: -1.5,
    firstTryAbility: 0.25,
    recentFirstTries: 0.125,
    retryAbility: 0,
    recentRetries: 0,
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
    const row = rowOf({ traces, answerNumber, skillAttempts });
    return [row[findColumn('itemRetry')], row[runColumn], row[findColumn('lastOnItem')]];
  };
  assert.deepEqual(retry(6, 3), [1, 3, -1]);
  assert.deepEqual(retry(9, 6), [1, 3, -1]);
  assert.deepEqual(retry(7, 3), [0, 3, -1]);
});

const { keys } = firstInput;

test('updateTraces counts answers, runs, item patterns and the last right answer', () => {
  const right = updateTraces(firstInput.traces, keys, { isCorrect: true, occurredAt: 61_999 }, 1, 0, 0);
  const { residual } = right.skill;
  assert.deepEqual(
    [right.skill, right.item, right.learner.lastRightAt],
    [
      { residual, lastAnswerNumber: 1, lastRightNumber: 1, lastRightAt: 61, streak: 1 },
      { right: 1, wrong: 0, wrongRun: 0, wrongBits: 0, otherSkillAnswers: 0, at: 61 },
      61_999,
    ],
  );
  const wrong = updateTraces(right, keys, { isCorrect: false, occurredAt: 50_000 }, 5, 1, 0);
  const { learner, skill } = wrong;
  assert.deepEqual([learner.right, learner.wrong, learner.wrongRun], [1, 1, 1]);
  assert.deepEqual([skill.lastAnswerNumber, skill.lastRightNumber, skill.lastRightAt], [5, 1, 61]);
  assert.deepEqual(wrong.item, {
    ...{ right: 1, wrong: 1, wrongRun: 1, wrongBits: 1, otherSkillAnswers: 3, at: 61 },
  });
  const withoutItem = { ...firstInput.traces, item: null };
  assert.equal(updateTraces(withoutItem, keys, { isCorrect: true, occurredAt: 0 }, 1, 0, 0).item, null);
});

test('updateTraces moves the ability with each answer and keeps all traces within their limits', () => {
  const { abilityBound, residualBound, abilityVariance } = predictionConstants;
  fc.assert(
    fc.property(upTo(300, fc.tuple(fc.boolean(), between(-8, 8))), (given) => {
      let traces: FeatureInput['traces'] = firstInput.traces;
      for (const [i, [isCorrect, offset]] of given.entries()) {
        const after = updateTraces(traces, keys, { isCorrect, occurredAt: 1000 * i }, i + 1, i, offset);
        const step = after.learner.ability - traces.learner.ability;
        assert.ok(isCorrect ? step >= 0 : step <= 0);
        traces = after;
      }
      const { learner, skill, item } = traces;
      assert.ok(Math.abs(learner.ability) <= abilityBound && Math.abs(skill.residual) <= residualBound);
      assert.ok(learner.variance > 0 && learner.variance <= abilityVariance);
      assert.ok((item?.right ?? 0) <= 255 && (item?.wrongRun ?? 0) <= 8);
    }),
  );
});

test('computeItemDifficulty rises with right answers and shrinks to 0 for items with few answers', () => {
  const termOf = (counts: ItemCounts, itemPriorAnswers = 10): number =>
    computeItemDifficulty(counts, { ...initialPredictionModel, itemPriorAnswers });
  assert.equal(termOf(noAnswers), 0);
  const counts = fc.integer({ min: 1, max: 500 }).chain((answers) =>
    fc.record({
      answers: fc.constant(answers),
      right: fc.integer({ min: 0, max: answers }),
      expected: between(0, answers),
    }),
  );
  fc.assert(
    fc.property(counts, (own) => {
      const term = termOf(own);
      assert.ok(Number.isFinite(term) && Math.abs(term) < 14);
      if (own.right < own.answers) assert.ok(termOf({ ...own, right: own.right + 1 }) >= term);
    }),
  );
  const one = { answers: 1, right: 1, expected: 0.6 };
  assert.ok(termOf(one) > 0 && termOf(one) < 0.5 && termOf(one, 1000) < 0.01);
  assert.ok(termOf({ answers: 100, right: 100, expected: 60 }) > 2);
});

const itemEffect = (item: number): number => (item % 2 === 0 ? 1.5 : -1.5);

/** Learners of different ability on 30 items. The even items are easy. */
function drawItemLog(learners: number, answersEach: number): AnswerLog {
  const random = seeded(11);
  const given = Array.from({ length: learners }, () => {
    const ability = 4 * random() - 2;
    return Array.from({ length: answersEach }, (_, i): Logged => {
      const item = 1 + Math.floor(random() * 30);
      const correct = random() < sigmoid(0.5 + ability + itemEffect(item));
      return { skill: skillOfItem(item), item, correct, at: 1.7e12 + 60_000 * i };
    });
  });
  return answerLog(skillCount, given, 30);
}

test('A fit finds the item effects of a synthetic log and predicts held-out learners better', () => {
  const log = drawItemLog(300, 40);
  const store = replayAll(log);
  const fitted = fitOn(
    log,
    selectLearners(log, (learner) => learner < 200),
    store,
  );
  for (const [item, counts] of fitted.itemCounts.entries()) {
    const difference = computeItemDifficulty(counts, fitted.model) - itemEffect(item);
    assert.ok(item === 0 || Math.abs(difference) < 1, `item ${item}: ${difference}`);
  }
  const lossOf = (model: PredictionModel, terms: FindTerms): number => {
    const from = log.starts[200] as number;
    let loss = 0;
    for (let i = from; i < log.skill.length; i++) {
      const row = store.rows.subarray(i * rowWidth, (i + 1) * rowWidth);
      const p = predict(model, terms(log.skill[i] as number, log.item[i] as number), row);
      loss -= Math.log(log.correct[i] === 1 ? p : 1 - p);
    }
    return loss / (log.skill.length - from);
  };
  const start = lossOf(initialPredictionModel, () => noTerms);
  const loss = lossOf(fitted.model, (skill, item) => findTerms(fitted, skill, item));
  assert.ok(loss < start - 0.02, `log loss ${loss}, initially ${start}`);
  assert.ok((fitted.model.weights[findColumn('ability')] as number) > 0.3);
});

const repeated = (answers: number, correct: (i: number) => boolean, item: number): Logged[] =>
  Array.from({ length: answers }, (_, i) => ({ skill: 0, item, correct: correct(i), at: 0 }));

test('fitOffsets estimates the variance of item effects', () => {
  const varianceAt = (sd: number): number => {
    const random = seeded(29);
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const effects = Array.from({ length: 301 }, () => sd * normal());
    const given = Array.from({ length: 600 }, () =>
      Array.from({ length: 40 }, (_, i): Logged => {
        const item = 1 + Math.floor(random() * 300);
        const correct = random() < sigmoid(0.2 + (effects[item] as number));
        return { skill: skillOfItem(item), item, correct, at: 1.7e12 + 60_000 * i };
      }),
    );
    return fitOffsets(answerLog(skillCount, given, 300)).itemVariance;
  };
  const found = [0, 0.5, 1].map(varianceAt) as [number, number, number];
  assert.ok(found[0] < 0.02, `${found}`);
  assert.ok(found[1] > 0.17 && found[1] < 0.33, `${found}`);
  assert.ok(found[2] > 0.75 && found[2] < 1.25, `${found}`);
  const { start } = predictionConstants.items.variance;
  const oneLearner = [repeated(500, (i) => i % 2 === 0, 1)];
  for (const log of [answerLog(0, []), answerLog(1, oneLearner, 1)])
    assert.ok(Math.abs(fitOffsets(log).itemVariance - start) < rounding);
});

test('replayLearners counts the first answers of a learner to an item, then one a day', () => {
  const { itemAnswersEach } = predictionConstants.fit;
  const repeats = repeated(itemAnswersEach + 3, (i) => i % 2 === 0, 1);
  const nextDay = { skill: 0, item: 1, correct: true, at: 86_400_000 };
  const log = answerLog(1, [[...repeats, nextDay, nextDay, { ...nextDay, item: 0 }]], 1);
  const expected = repeats.map((_, i) => (i < itemAnswersEach ? 1 : 0));
  assert.deepEqual([...replayAll(log).countsForItem], [...expected, 1, 0, 0]);
});

test('A fit leaves the weights at their start values below the minimum number of answers', () => {
  const { model } = fitAll(drawItemLog(20, 40));
  for (const [column, { start }] of features.entries())
    assert.ok(Math.abs((model.weights[column] as number) - start) < 1e-9);
});

test('A fit yields finite terms from one learner, one skill, equal answers, or no items', () => {
  const kinds: readonly ((i: number) => boolean)[] = [() => true, () => false, (i) => i % 3 > 0];
  for (const kind of kinds)
    for (const item of [0, 1])
      for (const answers of [1, 50, 6000]) assertUsable(answerLog(1, [repeated(answers, kind, item)], item));
  assertUsable(answerLog(0, []));
});

function assertUsable(log: AnswerLog): void {
  const fitted = fitAll(log);
  const { bias, weights, means, runs, streaks, patterns } = fitted.model;
  const terms = [fitted.pairs.terms, fitted.itemPairs.terms, fitted.skillTerms, fitted.itemTerms];
  const itemTerms = fitted.itemCounts.map((own) => computeItemDifficulty(own, fitted.model));
  const values = [
    bias,
    ...[weights, means, runs, streaks, patterns, itemTerms, ...terms].flatMap((of) => [...of]),
  ];
  assert.ok(values.every(Number.isFinite));
  const pCorrect = predict(fitted.model, log.skills === 0 ? noTerms : findTerms(fitted, 0, 0), rowOf({}));
  assert.ok(pCorrect > 0 && pCorrect < 1);
  assert.ok(Number.isFinite(computeAbilityOffset(fitOffsets(log), 0, 0, 0)));
}
