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
import { buildSweepSteps, type PartName, partNames } from '../../src/domain/fit/prediction/model-parts.js';
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
  type SkillTrace,
  updateTraces,
} from '../../src/domain/tracing/traces.js';
import { answerLog } from '../support/builders/answer-logs.js';
import { between, rounding, upTo } from '../support/builders/arbitraries.js';
import { seeded } from '../support/builders/random.js';

interface Logged {
  readonly skill: number;
  readonly item: number;
  readonly correct: boolean;
  readonly at: number;
}

const logOf = (learners: readonly (readonly Logged[])[], skills: number, items: number): AnswerLog =>
  answerLog(skills, learners, items);

/** Features of a log under the default parameters of BKT. */
function replayAll(log: AnswerLog, ranges: readonly (readonly [number, number])[]): FeatureStore {
  const offsets = fitOffsets(log);
  const store = createFeatureStore(log);
  const model = {
    skills: Array.from({ length: log.skills }, () => ({ parameters: defaultParameters, difficultyMean: 0 })),
    difficultyScale: 0,
  };
  for (const [from, to] of ranges) replayLearners(log, from, to, model, offsets, store);
  return store;
}

interface Fitted extends FittedPrediction {
  readonly itemCounts: readonly ItemCounts[];
}

const { sweeps, freshSweeps } = predictionConstants.fit;

function fitOn(
  log: AnswerLog,
  learners: LearnerSelection,
  store: FeatureStore,
  parts: readonly PartName[] = partNames,
): Fitted {
  const { itemVariance } = fitOffsets(log, learners);
  const memory = createFitMemory(log, learners, store, itemVariance);
  moveRanges(memory, 'weights', 0, memory.ranges);
  for (let sweep = 0; sweep < sweeps; sweep++)
    for (const step of buildSweepSteps(parts, sweep < freshSweeps)) runStep(memory, step);
  const fitted = buildPrediction(memory, itemVariance, identityCalibration);
  const itemCounts = Array.from({ length: log.items + 1 }, () => ({ answers: 0, right: 0, expected: 0 }));
  const end = learners.indexOf(0);
  const answers = log.starts[end < 0 ? log.starts.length - 1 : end] as number;
  for (let i = 0; i < answers; i++) {
    const item = log.item[i] as number;
    const counts = itemCounts[item] as (typeof itemCounts)[number];
    const terms = termsOf({ ...fitted, itemCounts: [] }, log.skill[i] as number, item);
    counts.answers++;
    counts.right += log.correct[i] as number;
    counts.expected += sigmoid(logOddsWithoutItem(fitted.model, terms, store.rows, i * rowWidth));
  }
  return { ...fitted, itemCounts };
}

const rowAt = ({ rows }: FeatureStore, i: number): Float32Array =>
  rows.subarray(i * rowWidth, (i + 1) * rowWidth);

const fitAll = (log: AnswerLog): Fitted =>
  fitOn(log, selectAllLearners(log), replayAll(log, [[0, log.starts.length - 1]]));

const noAnswers: ItemCounts = { answers: 0, right: 0, expected: 0 };

const termsOf = (
  { model, skillTerms, itemTerms, pairs, itemPairs, itemCounts }: Fitted,
  skill: number,
  item: number,
): PredictionTerms => ({
  skill: skillTerms.subarray(skill * skillTermCount, (skill + 1) * skillTermCount),
  item: item === 0 ? null : itemTerms.subarray(item * itemTermCount, (item + 1) * itemTermCount),
  related: readRelatedTerms(pairs, skill),
  itemsBefore: item === 0 ? emptyRelatedTerms : readRelatedTerms(itemPairs, item),
  itemDifficulty: item === 0 ? 0 : computeItemDifficulty(itemCounts[item] ?? noAnswers, model),
});

interface SkillHistory {
  trace: SkillTrace;
  attempts: number;
  right: number;
  mastery: number;
}

/** One learner as the service keeps it, without a store. */
function newLearnerHistory() {
  let learner = newLearnerTrace;
  let place = 0;
  const skills = new Map<number, SkillHistory>();
  const items = new Map<number, ItemTrace>();
  const skillOf = (skill: number): SkillHistory => {
    const known = skills.get(skill) ?? {
      trace: newSkillTrace,
      attempts: 0,
      right: 0,
      mastery: defaultParameters.pInit,
    };
    skills.set(skill, known);
    return known;
  };
  const tracesOf = (skill: number, item: number) => ({
    learner,
    skill: skillOf(skill).trace,
    item: item === 0 ? null : (items.get(item) ?? newItemTrace),
  });
  return {
    row(skill: number, item: number, occurredAt: number): Float64Array {
      const { attempts, right, mastery } = skillOf(skill);
      const { pGuess, pSlip } = defaultParameters;
      const row = new Float64Array(rowWidth);
      writeFeatures(row, 0, {
        traces: tracesOf(skill, item),
        keys: { skill: skill + 1, item },
        bktProbability: mastery * (1 - pSlip) + (1 - mastery) * pGuess,
        skillAttempts: attempts,
        skillRight: right,
        answerNumber: place + 1,
        occurredAt,
        difficulty: null,
        bias: 0,
      });
      return row;
    },
    answer({ skill, item, correct, at }: Logged): void {
      const own = skillOf(skill);
      const answer = { isCorrect: correct, occurredAt: at };
      const after = updateTraces(
        tracesOf(skill, item),
        { skill: skill + 1, item },
        answer,
        ++place,
        own.attempts,
        0.3,
      );
      learner = after.learner;
      own.trace = after.skill;
      own.attempts++;
      if (correct) own.right++;
      own.mastery = traceAnswer(defaultParameters, own.mastery, correct).masteryAfter;
      if (after.item !== null) items.set(item, after.item);
    },
  };
}

const skillCount = 3;
const itemCount = 6;
/** Item i belongs to skill (i - 1) mod 3; items 4 to 6 come last and may stay fresh. */
const skillOfItem = (item: number): number => (item - 1) % skillCount;

const history: fc.Arbitrary<Logged[]> = fc
  .array(
    fc.tuple(fc.integer({ min: 0, max: itemCount }), fc.boolean(), fc.integer({ min: 0, max: 200_000 })),
    {
      minLength: 1,
      maxLength: 40,
      size: 'max',
    },
  )
  .map((answers) => {
    let at = 1.7e12;
    return answers.map(([item, correct, seconds]) => {
      at += seconds < 100_000 ? 0 : (seconds - 100_000) * 1000 + 7;
      return { skill: item === 0 ? 0 : skillOfItem(item), item, correct, at };
    });
  });

/** Any weights with the signs of their features, and any slopes at all. */
const legalModel: fc.Arbitrary<{
  model: PredictionModel;
  terms: (skill: number, item: number) => PredictionTerms;
}> = fc.record({ seed: fc.integer(), size: between(0, 3) }).map(({ seed, size }) => {
  const random = seeded(seed);
  const spread = (): number => (random() - 0.5) * size;
  const terms = new Map<string, PredictionTerms>();
  const fresh = (item: number): PredictionTerms => ({
    skill: withRisingStreaks(Array.from({ length: skillTermCount }, spread)),
    item: item === 0 ? null : Array.from({ length: itemTermCount }, spread),
    related: { keys: [1, 2, 3], terms: Array.from({ length: 3 * skillPairWidth }, spread) },
    itemsBefore: { keys: [1, 2, 5], terms: Array.from({ length: 3 }, spread) },
    itemDifficulty: item === 0 ? 0 : spread(),
  });
  for (let skill = 0; skill < skillCount; skill++) {
    const { skill: own, related } = fresh(0);
    for (let item = 0; item <= itemCount; item++)
      terms.set(`${skill} ${item}`, { ...fresh(item), skill: own, related });
  }
  return {
    model: {
      bias: spread(),
      weights: features.map(({ sign }) => (sign === 0 ? spread() : sign * Math.abs(spread()))),
      means: features.map(spread),
      runs: Array.from({ length: 8 }, spread),
      streaks: Array.from({ length: streakCount }, spread).sort((a, b) => a - b),
      patterns: Array.from({ length: itemPatternCount }, spread),
      itemPriorAnswers: 10,
      itemScale: 1,
    },
    terms: (skill, item) => terms.get(`${skill} ${item}`) ?? fresh(item),
  };
});

/** Streaks stand behind intercept and slopes. */
const withRisingStreaks = (terms: number[]): number[] => {
  const streaks = terms.slice(firstStreak, firstStreak + streakCount).sort((a, b) => a - b);
  return terms.toSpliced(firstStreak, streakCount, ...streaks);
};
const firstStreak = 1 + skillColumns.length;

/** Around every answer: no other item of its skill moves against it. */
function assertMonotone(
  answers: readonly Logged[],
  model: PredictionModel,
  terms: (skill: number, item: number) => PredictionTerms,
): void {
  const learner = newLearnerHistory();
  for (const answer of answers) {
    const others = [0, 1, 2, 3, 4, 5, 6].filter(
      (item) => item === 0 || (item !== answer.item && skillOfItem(item) === answer.skill),
    );
    const told = (): number[] =>
      others.map((item) => {
        const row = learner.row(answer.skill, item, answer.at);
        return predict(model, terms(answer.skill, item), row);
      });
    const before = told();
    learner.answer(answer);
    for (const [i, after] of told().entries()) {
      const change = after - (before[i] as number);
      assert.ok((answer.correct ? -change : change) <= rounding, `item ${others[i]} moved by ${change}`);
    }
  }
}

test('no other item of the skill is predicted worse after a right answer or better after a wrong one', () => {
  fc.assert(
    fc.property(history, (answers) => assertMonotone(answers, initialPredictionModel, () => noTerms)),
  );
  fc.assert(
    fc.property(history, legalModel, (answers, { model, terms }) => assertMonotone(answers, model, terms)),
  );
});

const noTerms: PredictionTerms = {
  skill: buildUnseenTerms(initialPredictionModel),
  item: null,
  related: emptyRelatedTerms,
  itemsBefore: emptyRelatedTerms,
  itemDifficulty: 0,
};

test('fitted weights are monotone too, whatever they were fitted to', () => {
  const log = fc.array(history, { minLength: 1, maxLength: 12, size: 'max' });
  fc.assert(
    fc.property(log, history, (learners, answers) => {
      const fitted = fitAll(logOf(learners, skillCount, itemCount));
      assertMonotone(answers, fitted.model, (skill, item) => termsOf(fitted, skill, item));
    }),
    { numRuns: 30 },
  );
});

test('the terms that are shown add up to the log-odds of the prediction', () => {
  fc.assert(
    fc.property(history, legalModel, (answers, { model, terms }) => {
      const learner = newLearnerHistory();
      for (const answer of answers) learner.answer(answer);
      const { skill, item, at } = answers.at(-1) as Logged;
      const row = learner.row(skill, item, at);
      const own = terms(skill, item);
      const sum = explainPrediction(model, own, row).reduce((total, { logits }) => total + logits, 0);
      assert.ok(Math.abs(sigmoid(sum) - predict(model, own, row)) < 1e-9);
      const withoutItem = logOddsWithoutItem(model, own, row, 0);
      assert.ok(Math.abs(sum - own.itemDifficulty - withoutItem) < 1e-9);
      assertShown(explainPrediction(model, own, row), row);
    }),
  );
});

/** To the last of the four decimals that are shown, each with a sentence that says which way it goes. */
function assertShown(terms: readonly Term[], row: Float64Array): void {
  const shown = formatTerms(terms, row);
  const whole = (value: number): number => Math.round(value * 1e4);
  assert.equal(
    shown.terms.reduce((sum, { logits }) => sum + whole(logits), 0),
    whole(shown.logOdds),
  );
  for (const { name, logits, text } of shown.terms) {
    const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
    assert.match(text, new RegExp(`^[A-Z][^:.]+: this ${effect} the chance\\.$`), name);
    assert.ok(text.length <= 150 && !/NaN|Infinity|undefined|-/.test(text), text);
  }
}

test('a fitted model has every term, and they add up as they are shown', () => {
  const random = seeded(11);
  let at = 1.7e12;
  const learners = Array.from({ length: 60 }, () =>
    Array.from({ length: 40 }, (): Logged => {
      const item = 1 + Math.floor(random() * itemCount);
      at += random() < 0.5 ? 0 : 5 * 60_000;
      return { skill: skillOfItem(item), item, correct: random() < 0.3 + 0.08 * item, at };
    }),
  );
  const log = logOf(learners, skillCount, itemCount);
  const store = replayAll(log, [[0, learners.length]]);
  const fitted = fitOn(log, selectAllLearners(log), store);
  // Few answers move the bias alone.
  const weights = features.map(({ start, sign }) => start + 0.1 * (sign === 0 ? 1 : sign));
  const model = { ...fitted.model, weights };
  const seen = new Set<string>();
  for (let place = 0; place < log.correct.length; place++) {
    const row = Float64Array.from(rowAt(store, place));
    const terms = explainPrediction(
      model,
      termsOf(fitted, log.skill[place] as number, log.item[place] as number),
      row,
    );
    assertShown(terms, row);
    for (const { name, logits } of terms) if (Math.abs(logits) >= 1e-4) seen.add(name);
  }
  const tables = ['itemRun', 'streak', 'itemPattern', 'practisedBefore', 'course', 'itemBefore'];
  const expected = ['base', 'skill', 'item', ...tables, ...features.map(({ name }) => name)];
  assert.deepEqual(
    expected.filter((name) => !seen.has(name)),
    ['easiness'],
    'no difficulty was supplied',
  );
});

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

function firstRow(input: Partial<FeatureInput>): Float64Array {
  const row = new Float64Array(rowWidth);
  writeFeatures(row, 0, { ...firstInput, ...input });
  return row;
}

test('before there is a fit, the first prediction is that of BKT', () => {
  const probability = between(0.02, 0.45);
  const parameters = fc.record({
    pInit: probability,
    pLearn: probability,
    pGuess: probability,
    pSlip: probability,
    pForget: fc.double({ min: 0, max: 0.1, noNaN: true }),
  });
  fc.assert(
    fc.property(parameters, (own: BktParameters) => {
      const bktProbability = sigmoid(computeFirstLogOdds(own));
      const pCorrect = predict(
        initialPredictionModel,
        { ...noTerms, skill: buildInitialTerms(own) },
        firstRow({ bktProbability }),
      );
      assert.ok(Math.abs(pCorrect - bktProbability) < 1e-9);
    }),
  );
});

test('a learner without history has no feature but that of BKT', () => {
  const row = firstRow({});
  assert.ok(Math.abs((row[0] as number) - logit(0.41)) < 1e-9);
  assert.ok(row.subarray(1).every((value) => value === 0));
});

test('every feature stands in the column of its name', () => {
  const occurredAt = 1.7e12;
  const learner = {
    ...newLearnerTrace,
    ability: 0.7,
    recent: 0.2,
    slow: 0.1,
    right: 3,
    wrong: 2,
    wrongRun: 1,
    course: { ...newCourse, firstAbility: 0.25, firstForm: 0.125, retryAbility: 9, retryForm: 9 },
  };
  const row = firstRow({
    traces: {
      learner: { ...learner, lastRightAt: occurredAt - 4 * 60_000 },
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

test('a wrong answer on an item is followed by a retry until another skill is answered', () => {
  const item = { right: 0, wrong: 3, wrongRun: 3, wrongBits: 7, otherSkillAnswers: 2, at: 1.7e9 };
  const traces = { ...firstInput.traces, item };
  const retry = (answerNumber: number, skillAttempts: number): number[] => {
    const row = firstRow({ traces, answerNumber, skillAttempts });
    return [
      row[findColumn('itemRetry')] as number,
      row[runColumn] as number,
      row[findColumn('lastOnItem')] as number,
    ];
  };
  assert.deepEqual(retry(6, 3), [1, 3, -1]);
  assert.deepEqual(retry(9, 6), [1, 3, -1]);
  assert.deepEqual(retry(7, 3), [0, 3, -1]);
});

test('a harder question is less likely answered right', () => {
  fc.assert(
    fc.property(between(-3, 3), between(-3, 3), (a, b) => {
      const p = (difficulty: number) => predict(initialPredictionModel, noTerms, firstRow({ difficulty }));
      assert.ok(a === b || a < b === p(a) > p(b));
    }),
  );
});

const asked = firstInput.keys;

test('traces count answers, runs and the last right answer', () => {
  const start = { learner: newLearnerTrace, skill: newSkillTrace, item: newItemTrace };
  const right = updateTraces(start, asked, { isCorrect: true, occurredAt: 61_999 }, 1, 0, 0);
  assert.deepEqual(right.skill, {
    residual: right.skill.residual,
    lastAnswerNumber: 1,
    lastRightNumber: 1,
    lastRightAt: 61,
    streak: 1,
  });
  assert.deepEqual(right.item, {
    right: 1,
    wrong: 0,
    wrongRun: 0,
    wrongBits: 0,
    otherSkillAnswers: 0,
    at: 61,
  });
  assert.equal(right.learner.lastRightAt, 61_999);
  const wrong = updateTraces(right, asked, { isCorrect: false, occurredAt: 50_000 }, 5, 1, 0);
  assert.deepEqual([wrong.learner.right, wrong.learner.wrong, wrong.learner.wrongRun], [1, 1, 1]);
  assert.deepEqual(
    [wrong.skill.lastAnswerNumber, wrong.skill.lastRightNumber, wrong.skill.lastRightAt],
    [5, 1, 61],
  );
  assert.deepEqual(wrong.item, {
    right: 1,
    wrong: 1,
    wrongRun: 1,
    wrongBits: 1,
    otherSkillAnswers: 3,
    at: 61,
  });
  assert.equal(
    updateTraces({ ...start, item: null }, asked, { isCorrect: true, occurredAt: 0 }, 1, 0, 0).item,
    null,
  );
});

test('ability and residual stay within their bounds and follow the answers', () => {
  const answers = upTo(300, fc.tuple(fc.boolean(), between(-8, 8)));
  fc.assert(
    fc.property(answers, (given) => {
      let traces = { learner: newLearnerTrace, skill: newSkillTrace, item: newItemTrace as ItemTrace | null };
      for (const [i, [isCorrect, offset]] of given.entries()) {
        const after = updateTraces(traces, asked, { isCorrect, occurredAt: 1000 * i }, i + 1, i, offset);
        const step = after.learner.ability - traces.learner.ability;
        assert.ok(isCorrect ? step >= 0 : step <= 0);
        traces = after;
      }
      assert.ok(Math.abs(traces.learner.ability) <= predictionConstants.abilityBound);
      assert.ok(Math.abs(traces.skill.residual) <= predictionConstants.residualBound);
      assert.ok(
        traces.learner.variance > 0 && traces.learner.variance <= predictionConstants.abilityVariance,
      );
      assert.ok((traces.item?.right ?? 0) <= 255 && (traces.item?.wrongRun ?? 0) <= 8);
    }),
  );
});

const trust = (itemPriorAnswers: number) => ({ ...initialPredictionModel, itemPriorAnswers });

test('the item term follows the right answers and is drawn to 0', () => {
  assert.equal(computeItemDifficulty(noAnswers, trust(10)), 0);
  const counts = fc.integer({ min: 1, max: 500 }).chain((answers) =>
    fc.record({
      answers: fc.constant(answers),
      right: fc.integer({ min: 0, max: answers }),
      expected: between(0, answers),
    }),
  );
  fc.assert(
    fc.property(counts, (own) => {
      const term = computeItemDifficulty(own, trust(10));
      assert.ok(Number.isFinite(term) && Math.abs(term) < 14);
      if (own.right < own.answers)
        assert.ok(computeItemDifficulty({ ...own, right: own.right + 1 }, trust(10)) >= term);
    }),
  );
  const one = computeItemDifficulty({ answers: 1, right: 1, expected: 0.6 }, trust(10));
  const many = computeItemDifficulty({ answers: 100, right: 100, expected: 60 }, trust(10));
  assert.ok(one > 0 && one < 0.5 && many > 2);
  assert.ok(computeItemDifficulty({ answers: 1, right: 1, expected: 0.6 }, trust(1000)) < 0.01);
});

interface Truth {
  readonly log: AnswerLog;
  readonly items: readonly number[];
}

/** Learners of different ability on items that are centred within their skill; nobody learns. */
function synthetic(learners: number, answersEach: number): Truth {
  const random = seeded(11);
  const normal = (): number => random() + random() + random() + random() + random() + random() - 3;
  const drawn = Array.from({ length: 31 }, () => 1.5 * normal());
  const items = drawn.map(
    (ease, item) => ease - meanOf(drawn.filter((_, i) => i > 0 && (i - item) % skillCount === 0)),
  );
  const abilities = Array.from({ length: learners }, () => 2 * normal());
  const given = abilities.map((ability) => {
    const residuals = Array.from({ length: skillCount }, () => normal());
    return Array.from({ length: answersEach }, (_, i): Logged => {
      const item = 1 + Math.floor(random() * 30);
      const skill = skillOfItem(item);
      const p = sigmoid(0.5 + ability + (residuals[skill] as number) + (items[item] as number));
      return { skill, item, correct: random() < p, at: 1.7e12 + 60_000 * i };
    });
  });
  return { log: logOf(given, skillCount, 30), items };
}

test('a fit finds the items of a synthetic log and foretells its other learners', () => {
  const { log, items } = synthetic(300, 40);
  const store = replayAll(log, [[0, 300]]);
  const fitted = fitOn(
    log,
    selectLearners(log, (learner) => learner < 200),
    store,
  );
  const found = fitted.itemCounts.slice(1).map((own) => computeItemDifficulty(own, fitted.model));
  assert.ok(correlation(found, items.slice(1)) > 0.85);
  const start = heldOutLoss(log, store, 200, (row) => predict(initialPredictionModel, noTerms, row));
  const loss = heldOutLoss(log, store, 200, (row, skill, item) =>
    predict(fitted.model, termsOf(fitted, skill, item), row),
  );
  assert.ok(loss < start - 0.02, `${loss} against ${start}`);
  assert.ok((fitted.model.weights[findColumn('ability')] as number) > 0.3);
});

/** Answers by nothing but chance and an item's effect of that sd, each learner on items of all skills. */
function drawn(learners: number, items: number, sd: number): AnswerLog {
  const random = seeded(29);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const effects = Array.from({ length: items + 1 }, () => sd * normal());
  const given = Array.from({ length: learners }, () =>
    Array.from({ length: 40 }, (_, i): Logged => {
      const item = 1 + Math.floor(random() * items);
      const correct = random() < sigmoid(0.2 + (effects[item] as number));
      return { skill: skillOfItem(item), item, correct, at: 1.7e12 + 60_000 * i };
    }),
  );
  return logOf(given, skillCount, items);
}

test('where items and skills tell nothing, the fit says so', () => {
  const log = drawn(750, 900, 0);
  const store = replayAll(log, [[0, 750]]);
  const fitted = fitOn(
    log,
    selectLearners(log, (learner) => learner < 600),
    store,
  );
  const share = meanOf([...log.correct].slice(0, log.starts[600]));
  const constant = heldOutLoss(log, store, 600, () => share);
  const bins = new Float64Array(10);
  const loss = heldOutLoss(log, store, 600, (row, skill, item, correct) => {
    const told = predict(fitted.model, termsOf(fitted, skill, item), row);
    const bin = Math.min(9, Math.floor(10 * told));
    bins[bin] = (bins[bin] as number) + told - correct;
    return told;
  });
  assert.ok(loss < constant + 0.002, `${loss} against ${constant}`);
  const answers = log.skill.length - (log.starts[600] as number);
  const calibration = bins.reduce((sum, off) => sum + Math.abs(off), 0) / answers;
  assert.ok(calibration < 0.02, `calibration error ${calibration}`);
});

test('the variance of item effects is found, whatever else answers differ by', () => {
  const variance = (log: AnswerLog): number => fitOffsets(log).itemVariance;
  const { start } = predictionConstants.items.variance;
  assert.ok(variance(drawn(600, 300, 0)) < 0.02);
  const one = variance(drawn(600, 300, 1));
  assert.ok(one > 0.75 && one < 1.25, `${one}`);
  const some = variance(drawn(600, 300, 0.5));
  assert.ok(some > 0.17 && some < 0.33, `${some}`);
  assert.ok(Math.abs(variance(logOf([], 0, 0)) - start) < rounding, 'nothing to learn it from');
  const alone = [repeated(500, (i) => i % 2 === 0, 1)];
  assert.ok(Math.abs(variance(logOf(alone, 1, 1)) - start) < rounding, 'one learner tells nothing of items');
});

const meanOf = (xs: readonly number[]): number => xs.reduce((sum, x) => sum + x, 0) / xs.length;

function correlation(a: readonly number[], b: readonly number[]): number {
  const [centreA, centreB] = [meanOf(a), meanOf(b)];
  const product = (xs: readonly number[], ys: readonly number[], x0: number, y0: number): number =>
    xs.reduce((sum, x, i) => sum + (x - x0) * ((ys[i] as number) - y0), 0);
  const spread = Math.sqrt(product(a, a, centreA, centreA) * product(b, b, centreB, centreB));
  return product(a, b, centreA, centreB) / spread;
}

/** Mean log loss on the learners from `first` on. */
function heldOutLoss(
  log: AnswerLog,
  store: FeatureStore,
  first: number,
  p: (row: Float32Array, skill: number, item: number, correct: number) => number,
): number {
  const from = log.starts[first] as number;
  let loss = 0;
  for (let i = from; i < log.skill.length; i++) {
    const correct = log.correct[i] as number;
    const told = p(rowAt(store, i), log.skill[i] as number, log.item[i] as number, correct);
    loss -= Math.log(correct === 1 ? told : 1 - told);
  }
  return loss / (log.skill.length - from);
}

test('a fit of the same log gives the same figures, and its replay may be done in parts', () => {
  const { log } = synthetic(60, 100);
  const whole = replayAll(log, [[0, 60]]);
  const parts = replayAll(log, [
    [20, 60],
    [0, 20],
  ]);
  assert.deepEqual(parts, whole);
  assert.deepEqual(fitOn(log, selectAllLearners(log), parts), fitOn(log, selectAllLearners(log), whole));
});

test('of one learner, the first few answers count for an item, and then one a day', () => {
  const { itemAnswersEach } = predictionConstants.fit;
  const repeats = repeated(itemAnswersEach + 3, (i) => i % 2 === 0, 1);
  const nextDay = { skill: 0, item: 1, correct: true, at: 86_400_000 };
  const without = { skill: 0, item: 0, correct: true, at: 86_400_000 };
  const log = logOf([[...repeats, nextDay, nextDay, without]], 1, 1);
  const expected = repeats.map((_, i) => (i < itemAnswersEach ? 1 : 0));
  assert.deepEqual([...replayAll(log, [[0, 1]]).countsForItem], [...expected, 1, 0, 0]);
});

test('weights stay as they start below the least number of answers', () => {
  const { log } = synthetic(20, 40);
  const { model } = fitAll(log);
  for (const [column, { start }] of features.entries()) {
    assert.ok(Math.abs((model.weights[column] as number) - start) < 1e-9);
  }
});

const repeated = (answers: number, correct: (i: number) => boolean, item: number): Logged[] =>
  Array.from({ length: answers }, (_, i) => ({ skill: 0, item, correct: correct(i), at: 0 }));

test('logs of one learner, one skill, one kind of answer, without items or times can be fitted', () => {
  const kinds: readonly ((i: number) => boolean)[] = [() => true, () => false, (i) => i % 3 > 0];
  for (const kind of kinds) {
    for (const item of [0, 1]) {
      for (const answers of [1, 50, 6000]) assertUsable(logOf([repeated(answers, kind, item)], 1, item));
    }
  }
  assertUsable(logOf([], 0, 0));
});

function assertUsable(log: AnswerLog): void {
  const fitted = fitAll(log);
  const figures = [
    fitted.model.bias,
    ...fitted.model.weights,
    ...fitted.model.means,
    ...fitted.model.runs,
    ...fitted.model.streaks,
    ...fitted.model.patterns,
    ...fitted.pairs.terms,
    ...fitted.itemPairs.terms,
    ...fitted.skillTerms,
    ...fitted.itemTerms,
    ...fitted.itemCounts.map((own) => computeItemDifficulty(own, fitted.model)),
  ];
  assert.ok(figures.every(Number.isFinite));
  const pCorrect = predict(fitted.model, log.skills === 0 ? noTerms : termsOf(fitted, 0, 0), firstRow({}));
  assert.ok(pCorrect > 0 && pCorrect < 1);
  assert.ok(Number.isFinite(computeAbilityOffset(fitOffsets(log), 0, 0, 0)));
}
