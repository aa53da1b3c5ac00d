/** The fit of a tenant's model, its threads, and the parts of the served probability that it may publish. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createFitPool } from '../../src/compute/job-pools.js';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import type { AnswerLog } from '../../src/domain/base/answer-log.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, logit, sigmoid } from '../../src/domain/base/common.js';
import { predictionConstants } from '../../src/domain/base/prediction-constants.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant, type TenantFitResult } from '../../src/domain/fit/fit-tenant.js';
import { fitOffsets } from '../../src/domain/fit/prediction/ability-offsets.js';
import { fitCalibration, identityCalibration } from '../../src/domain/fit/prediction/cross-fit.js';
import type { PartName } from '../../src/domain/fit/prediction/model-parts.js';
import {
  buildFrequentPairs,
  buildPairTable,
  findPairMember,
  mapRelatedKeys,
  readRelatedTerms,
} from '../../src/domain/fit/prediction/pair-tables.js';
import { buildItemModel } from '../../src/domain/fit/prediction/replay-log.js';
import { features, findColumn, rowWidth, streakColumn } from '../../src/domain/prediction/features.js';
import {
  computeItemDifficulty,
  predict,
  skillTermCount,
  streakCount,
} from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { indices } from '../../src/lists.js';
import { answerLog, fitInput, fullFitInput, type LoggedAnswer } from '../support/builders/answer-logs.js';
import { rounding } from '../support/builders/arbitraries.js';
import { createNormal, seeded } from '../support/builders/random.js';

type LogPlan = Readonly<Record<'learners' | 'answersEach' | 'skills' | 'items', number>>;

/** @param draw the learner's next answer, from the earlier ones */
function drawLog(
  { learners, answersEach, skills, items }: LogPlan,
  draw: (random: () => number, earlier: readonly LoggedAnswer[], learner: number) => LoggedAnswer,
): AnswerLog {
  const random = seeded(17);
  const given = Array.from({ length: learners }, (_, learner) => {
    const answers: LoggedAnswer[] = [];
    while (answers.length < answersEach)
      answers.push({ at: 1.7e12 + 6e4 * answers.length, ...draw(random, answers, learner) });
    return answers;
  });
  return answerLog(skills, given, items);
}

/** Answers in turn on all skills, each with five items; learners differ in ability, and learn. */
const drawSchool = (learners: number, skills: number, withDifficulty = false): AnswerLog =>
  drawLog({ learners, skills, answersEach: 48, items: 5 * skills }, (random, earlier, learner) => {
    const practice = Math.floor(earlier.length / skills);
    const skill = earlier.length % skills;
    const variant = Math.floor(random() * 5);
    const easiness = -0.5 * (variant - 2);
    return {
      skill,
      item: 1 + 5 * skill + variant,
      correct: random() < sigmoid((learner % 7) / 2 - 2.5 + 0.4 * practice + easiness),
      seconds: 10 + 50 * random(),
      ...(withDifficulty && { difficulty: -easiness }),
    };
  });

test('fitTenant computes the same published model in threads and in the calling thread', {
  timeout: 120_000,
}, async (t) => {
  const input = fitInput(drawSchool(90, 6, true));
  const pool = createFitPool({ threads: 3, servesRequests: false, redisUrl: '', clickhouseUrl: '' });
  t.after(() => pool.close());
  const [here, there] = await Promise.all([fitTenant(input, localRunner), fitTenant(input, pool)]);
  assert.deepEqual(there, here);
  const { oldLogLoss, newLogLoss, published } = here.report.served;
  assert.ok(here.changed && published && (newLogLoss ?? 1) < (oldLogLoss ?? 0));
  assert.deepEqual(decodeModel(encodeModel(here.model)), here.model);
  assert.equal(resolveSkillModel(here.model, 'new').source, 'prior');
});

test('A fit pool rejects running and later tasks if its thread cannot start', async (t) => {
  class BrokenWorker extends Worker {
    constructor() {
      super('throw new Error("no thread")', { eval: true });
    }
  }
  const threads = createRequire(import.meta.url)('node:worker_threads');
  threads.Worker = BrokenWorker;
  const pool = createFitPool({ threads: 1, redisUrl: '', clickhouseUrl: '', servesRequests: true });
  t.after(() => {
    threads.Worker = Worker;
    return pool.close();
  });
  for (let task = 0; task < 2; task++)
    await assert.rejects(pool.readAnswers('default'), { message: 'no thread' });
});

test('fitTenant returns a model that is no worse when it fits the same answers again', async () => {
  const log = drawSchool(80, 5);
  const first = await fitTenant(fitInput(log), localRunner);
  const second = await fitTenant({ ...fitInput(log, first.model), currentItems: first.items }, localRunner);
  const { oldLogLoss, newLogLoss } = second.report.served;
  assert.ok(Math.abs((oldLogLoss ?? 0) - (first.report.served.newLogLoss ?? 1)) < 1e-9);
  assert.ok((newLogLoss ?? 1) <= (oldLogLoss ?? 0) + 0.001);
});

test('fitTenant keeps manual parameters and unanswered skills, and has no prior below five fitted skills', async () => {
  const parameters = { pInit: 0.5, pLearn: 0.05, pGuess: 0.1, pSlip: 0.05, pForget: 0 };
  const base = resolveSkillModel(unfittedModel, '');
  const manual: SkillModel = { ...base, parameters, source: 'manual', version: 3 };
  const skills = new Map<string, SkillModel>([
    ['skill 0', manual],
    ['unanswered', { ...manual, source: 'fitted' }],
  ]);
  const current = { ...unfittedModel, version: 3, skills };
  const { model } = await fitTenant(fitInput(drawSchool(60, 4), current), localRunner);
  const [set, unanswered] = ['skill 0', 'unanswered'].map((skillId) => model.skills.get(skillId));
  assert.deepEqual([set?.parameters, set?.source], [parameters, 'manual']);
  assert.deepEqual(unanswered?.parameters, parameters);
  assert.equal(model.skills.get('skill 1')?.version, 4);
  assert.equal(model.prior, null);
  assert.deepEqual(resolveSkillModel(model, 'new').parameters, defaultParameters);
});

const fitAll = (log: AnswerLog) => fitTenant(fullFitInput(log), localRunner);

test('fitTenant returns a storable model for few learners, equal answers, or no items', async () => {
  const logs = [answerLog(0, [])];
  for (const learners of [1, 2, 5])
    for (const withDifficulty of [false, true]) logs.push(drawSchool(learners, 2, withDifficulty));
  for (const kind of [() => true, () => false, (i: number) => i % 3 > 0])
    for (const item of [0, 1])
      for (const length of [1, 50, 6000]) {
        const answers = Array.from({ length }, (_, i) => ({ skill: 0, item, correct: kind(i) }));
        logs.push(answerLog(1, [answers], item));
      }
  for (const log of logs) {
    const { model, items } = await fitAll(log);
    const text = encodeModel(model);
    assert.equal(encodeModel(decodeModel(text)), text);
    assert.ok(items !== null);
    const figures = [items.terms, items.offsets, items.pairs.terms, items.sums.expected];
    assert.ok(figures.every((list) => list.every(Number.isFinite)));
  }
});

test('fitTenant changes only the scale of the start weights below the minimum number of answers', async () => {
  const { weights, itemScale } = (await fitAll(drawItemLog(20))).model.prediction;
  const spread = itemScale / predictionConstants.itemScale;
  for (const [column, { start }] of features.entries())
    assert.ok(Math.abs((weights[column] as number) - spread * start) < 1e-9);
});

const itemEffect = (item: number): number => (item % 2 === 0 ? 1.5 : -1.5);

/** Learners of different ability on 30 items. The even items are easy. */
const drawItemLog = (learners: number): AnswerLog =>
  drawLog({ learners, answersEach: 40, skills: 3, items: 30 }, (random, _, learner) => {
    const item = 1 + Math.floor(random() * 30);
    const ability = ((learner * 7) % 11) / 2.5 - 2;
    return { skill: item % 3, item, correct: random() < sigmoid(0.5 + ability + itemEffect(item)) };
  });

test('fitTenant finds the item effects of a synthetic log and predicts held-out learners better', async () => {
  const { model, items, report } = await fitTenant(fitInput(drawItemLog(300)), localRunner);
  assert.ok(items !== null);
  for (let item = 1; item <= 30; item++) {
    const difficulty = computeItemDifficulty(buildItemModel(items, item, Number), model.prediction);
    assert.ok(Math.abs(difficulty - itemEffect(item)) < 1, `item ${item}: ${difficulty}`);
  }
  const { oldLogLoss, newLogLoss } = report.served;
  assert.ok((newLogLoss ?? 1) < (oldLogLoss ?? 0) - 0.02, `log loss ${newLogLoss}, before ${oldLogLoss}`);
  assert.ok((model.prediction.weights[findColumn('ability')] as number) > 0.3);
});

test('fitOffsets estimates the variance of item effects', () => {
  const varianceAt = (sd: number): number => {
    const random = seeded(29);
    const normal = createNormal(random);
    const effects = Array.from({ length: 301 }, () => sd * normal());
    const plan = { learners: 600, answersEach: 40, skills: 3, items: 300 };
    const log = drawLog(plan, () => {
      const item = 1 + Math.floor(random() * 300);
      return { skill: item % 3, item, correct: random() < sigmoid(0.2 + (effects[item] as number)) };
    });
    return fitOffsets(log).itemVariance;
  };
  const found = [0, 0.5, 1].map(varianceAt) as [number, number, number];
  assert.ok(found[0] < 0.02, `${found}`);
  assert.ok(found[1] > 0.17 && found[1] < 0.33, `${found}`);
  assert.ok(found[2] > 0.75 && found[2] < 1.25, `${found}`);
  const { start } = predictionConstants.items.variance;
  const oneLearner = Array.from({ length: 500 }, (_, i) => ({ skill: 0, item: 1, correct: i % 2 === 0 }));
  for (const log of [answerLog(0, []), answerLog(1, [oneLearner], 1)])
    assert.ok(Math.abs(fitOffsets(log).itemVariance - start) < rounding);
});

test('fitTenant counts the first answers of a learner to an item, then one a day', async () => {
  const { itemAnswersEach } = predictionConstants.fit;
  const repeats = indices(itemAnswersEach + 3).map((i) => ({
    skill: 0,
    item: 1,
    correct: i < itemAnswersEach,
  }));
  const nextDay = { skill: 0, item: 1, correct: true, at: dayMs };
  const { items } = await fitAll(answerLog(1, [[...repeats, nextDay, nextDay, { ...nextDay, item: 0 }]], 1));
  for (const name of ['answers', 'right'] as const)
    assert.deepEqual([...(items?.sums[name] ?? [])], [0, itemAnswersEach + 1], name);
});

const gainOf = ({ report }: TenantFitResult, name: PartName): number => {
  const trial = report.served.parts.find(({ part }) => part === name);
  return trial === undefined ? 0 : trial.without - trial.with;
};

test('fitTenant publishes terms of a skill for the skills that were answered before it', async () => {
  // Skill 0 follows skill 1 or 2. After skill 1 its answers are mostly right, after skill 2 mostly wrong.
  const plan = { learners: 240, answersEach: 40, skills: 6, items: 0 };
  const log = drawLog(plan, (random, earlier) => {
    const last = earlier.at(-1)?.skill ?? 0;
    const skill = last === 1 || last === 2 ? 0 : 1 + Math.floor(random() * 5);
    const p = skill !== 0 ? 0.5 : last === 1 ? 0.9 : 0.3;
    return { skill, correct: random() < p };
  });
  const fitted = await fitTenant(fitInput(log), localRunner);
  assert.ok(gainOf(fitted, 'before') > 0.01, `gain ${gainOf(fitted, 'before')}`);
  const { keys, terms } = fitted.model.skills.get('skill 0')?.related ?? { keys: [], terms: [] };
  const termAfter = (skillId: string): number =>
    terms[3 * Array.from(keys).indexOf(hashKey(skillId))] as number;
  assert.ok(termAfter('skill 1') - termAfter('skill 2') > 1);
});

test('fitTenant separates the ability on first tries from the ability on retries', async () => {
  // A learner who is weak on first tries is strong on retries, and vice versa.
  const plan = { learners: 180, answersEach: 60, skills: 6, items: 60 };
  const log = drawLog(plan, (random, earlier, learner) => {
    const last = earlier.at(-1);
    const isRetry = last !== undefined && !last.correct;
    const item = isRetry ? (last.item as number) : 1 + Math.floor(random() * 60);
    const ability = learner % 2 === 0 ? 1.5 : -1.5;
    return { skill: item % 6, item, correct: random() < sigmoid(isRetry ? -ability : ability) };
  });
  const fitted = await fitTenant(fitInput(log), localRunner);
  assert.ok(gainOf(fitted, 'retries') > 0.005, `gain ${gainOf(fitted, 'retries')}`);
  const weight = fitted.model.prediction.weights[findColumn('retryAbility')] as number;
  assert.ok(weight > 0.05, `weight ${weight}`);
});

test('fitTenant publishes only parts that lower the log loss on held-out learners', async () => {
  const log = drawLog({ learners: 60, answersEach: 40, skills: 6, items: 30 }, (random) => {
    const item = 1 + Math.floor(random() * 30);
    return { skill: item % 6, item, correct: random() < 0.6 };
  });
  const { report, model } = await fitTenant(fitInput(log), localRunner);
  const { parts } = report.served;
  for (const { without, with: grown, published } of parts) assert.equal(published, grown < without);
  assert.ok(parts.some(({ published }) => !published));
  if (parts.some(({ part, published }) => part === 'streaks' && !published))
    assert.ok(model.prediction.streaks.every((term) => term === 0));
});

const withRelated = (related: SkillModel['related']): string =>
  encodeModel({
    ...unfittedModel,
    skills: new Map([['odd', { ...resolveSkillModel(unfittedModel, 'odd'), related }]]),
  });

test('decodeModel rejects another format, terms without keys, and keys out of order', () => {
  const cases: readonly [text: string, error: RegExp][] = [
    [
      encodeModel(unfittedModel).replace('"format":3', '"format":4'),
      /cannot read the stored model: \/format/,
    ],
    [withRelated({ keys: [1], terms: [0.5] }), /terms without a key/],
    // A search by halves would not find some of these keys.
    [withRelated({ keys: [2, 1], terms: [0, 0, 0, 0, 0, 0] }), /the keys of skill odd are not in order/],
  ];
  for (const [text, error] of cases) assert.throws(() => decodeModel(text), error);
});

test('decodeModel rejects a model that is cut off at any character', () => {
  const skills = new Map(['a', 'b'].map((skillId) => [skillId, resolveSkillModel(unfittedModel, skillId)]));
  const text = encodeModel({ ...unfittedModel, skills });
  assert.deepEqual(decodeModel(text).skills, skills);
  for (let length = 0; length < text.length; length++)
    assert.throws(() => decodeModel(text.slice(0, length)), `${length} of ${text.length}`);
});

test('fitCalibration finds the spread of log-odds and keeps it within its limits', () => {
  const calibrate = (logits: readonly number[]) =>
    fitCalibration(
      { correct: Uint8Array.from(logits, (_, i) => i % 2) } as AnswerLog,
      Float64Array.from(logits, (eta, i) => (i % 2 === 1 ? eta : -eta)),
    );
  const { low, high, maxStep } = predictionConstants.fit.calibration;
  for (const eta of [-14, -2, 0, 2, 14]) {
    const { shift, spread } = calibrate(new Array(1000).fill(eta));
    assert.ok(spread >= low && spread <= high, `spread ${spread} at ${eta}`);
    assert.ok(Math.abs(shift) <= 8 * maxStep, `shift ${shift} at ${eta}`);
  }
  assert.deepEqual(calibrate(new Array(1000).fill(0)), identityCalibration);
  // Predictions of log-odds 4 are right in nine of ten cases.
  const { spread } = calibrate(Array.from({ length: 20_000 }, (_, i) => (i % 20 < 2 ? -4 : 4)));
  assert.ok(Math.abs(spread - logit(0.9) / 4) < 0.01, `${spread}`);
});

test('resolveSkillModel gives a skill without a fit the streaks of all skills', () => {
  const streaks = Array.from({ length: streakCount }, (_, i) => i / 10 - 0.5);
  const model = { ...unfittedModel, prediction: { ...unfittedModel.prediction, streaks } };
  const { terms } = resolveSkillModel(model, 'new');
  assert.equal(terms.length, skillTermCount);
  const logitsAt = (streak: number): number => {
    const row = new Float64Array(rowWidth);
    row[streakColumn] = streak;
    const related = { related: emptyRelatedTerms, itemsBefore: emptyRelatedTerms };
    return logit(predict(model.prediction, { ...related, skill: terms, item: null, itemDifficulty: 0 }, row));
  };
  assert.ok(Math.abs(logitsAt(5) - logitsAt(0) - 0.5) < 1e-9);
  assert.ok(Math.abs(logitsAt(-5) - logitsAt(0) + 0.5) < 1e-9);
});

test('buildFrequentPairs keeps the most frequent pairs within the limits per owner and in total', () => {
  // Owner 0 has key k in k answers, owner 1 has key 1 in nine answers.
  const rows = Float32Array.from([1, 2, 2, 3, 3, 3, ...new Array(9).fill(1)]);
  const sorted = { order: Uint32Array.from(rows, (_, index) => index), starts: Uint32Array.of(0, 6, 15) };
  const tableOf = (answers: number, each: number, all: number) =>
    buildFrequentPairs(rows, 1, sorted, [0], 1, { answers, each, all });
  assert.deepEqual([...tableOf(1, 9, 9).keys], [1, 2, 3, 1]);
  assert.deepEqual([...tableOf(2, 9, 9).keys], [2, 3, 1]);
  assert.deepEqual([...tableOf(1, 1, 9).keys], [3, 1]);
  const one = tableOf(1, 9, 1);
  assert.deepEqual([[...one.keys], [...one.starts]], [[1], [0, 0, 1]]);
  const members = [findPairMember(one, 0, 3), findPairMember(one, 1, 1), findPairMember(one, 1, 0)];
  assert.deepEqual(members, [0, 1, 0]);
});

test('mapRelatedKeys renumbers pairs, and drops unknown keys and pairs without a term', () => {
  const zeros = { keys: [2, 5, 9], terms: [0, 0, -0, 0, 0, 0.5] };
  const kept = mapRelatedKeys(zeros, 2, (key) => key);
  assert.deepEqual(kept, { keys: [9], terms: [0, 0.5] });
  const related = { keys: [2, 5, 9], terms: [1, 2, 3, 4, 5, 6] };
  const renamed = mapRelatedKeys(related, 2, (key) => (key === 5 ? 0 : 20 - key));
  assert.deepEqual(renamed, { keys: [11, 18], terms: [5, 6, 1, 2] });
  const { keys, terms } = readRelatedTerms(buildPairTable([renamed, { keys: [], terms: [] }], 2), 0);
  assert.deepEqual([[...(keys as Uint32Array)], [...(terms as Float32Array)]], [renamed.keys, renamed.terms]);
});
