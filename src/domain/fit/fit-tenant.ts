/**
 * Fits a model on the training learners and accepts each part that is no worse on the held-out learners. Does not
 * fit again on all learners. Stores nothing.
 */

import {
  collectAnswerIndices,
  type LearnerSelection,
  selectAllLearners,
  selectLearners,
  sharedArrays,
  toSharedFloats,
} from '../base/answer-log.js';
import { fitConstants } from '../base/fit-constants.js';
import { predictionConstants } from '../base/prediction-constants.js';
import { hashKey } from '../base/text-hash.js';
import { resolveQuestionModel, type TenantModel } from '../catalogue/tenant-model.js';
import { itemTermCount } from '../prediction/prediction-model.js';
import { skillPairWidth } from '../prediction/related-terms.js';
import { combineIds } from '../tracing/course.js';
import type { SkillTimes } from '../tracing/response-times.js';
import { buildTracedModel, canPublish, fitParameters } from './fit-parameters.js';
import { type FitInput, type FitWork, runInRanges, type StageRunner } from './fit-stages.js';
import { addTerms, listSetIds } from './fitted-model.js';
import type { AbilityOffsets } from './prediction/ability-offsets.js';
import type { CrossFold } from './prediction/cross-fit.js';
import { hasAnswersFor, setRetriesAllowed } from './prediction/fit-memory.js';
import type { FittedPrediction } from './prediction/fitted-prediction.js';
import {
  type BlockName,
  buildSweepSteps,
  type FitStep,
  type PartName,
  partNames,
  selectSweepParts,
} from './prediction/model-parts.js';
import { buildPairTable, createEmptyTable, mapRelatedKeys } from './prediction/pair-tables.js';
import { createFeatureStore, type FeatureStore, type FittedItems } from './prediction/replay-log.js';

const { fit: rules } = predictionConstants;

/** @param hashes by learner, uniform over 32 bits; a learner keeps its hash, so every fit has the same split */
export function selectTrainingLearners(hashes: Uint32Array): LearnerSelection {
  const training = sharedArrays.bytes(hashes.length);
  training.set(hashes.map((hash) => (hash / 2 ** 32 < fitConstants.heldOutShare ? 0 : 1)));
  return training;
}

/** `items` null: the current ones stay valid. */
export async function fitTenant(
  input: FitInput,
  stages: StageRunner,
  onStep: FitWork['onStep'] = () => undefined,
) {
  const { log, training, current, version, fittedAt } = input;
  const heldOut = selectLearners(log, (learner) => training[learner] === 0);
  const work = { ...input, heldOut, stages, onStep };
  const { base, times, skills, comparison } = await fitParameters(work);
  const store = createFeatureStore(log);
  const served = await fitServed(work, base, times, store);
  onStep('accuracy forecast');
  const accuracy = await stages.run('fitAccuracyChecked', log, training, heldOut, store, current.accuracy);
  const { skills: traced } = buildTracedModel(served.model, input.skillIds);
  const growth = await stages.run('fitGrowth', log, training, traced);
  const reason = 'predictions are worse with the new parameters';
  const reports = skills.map((skill) =>
    skill.published && !served.acceptsParameters ? { ...skill, published: false, reason } : skill,
  );
  const model: TenantModel = { ...served.model, accuracy: accuracy.model, growth, version, fittedAt };
  return {
    model,
    items: served.items,
    changed: [served.report, accuracy.report, ...reports].some(({ published }) => published),
    report: {
      answers: log.skill.length,
      learners: training.length,
      heldOutLearners: heldOut.reduce((sum, isHeldOut) => sum + isHeldOut, 0),
      skills: reports,
      bkt: comparison,
      served: served.report,
      accuracy: accuracy.report,
    },
  };
}

export type TenantFitResult = Awaited<ReturnType<typeof fitTenant>>;

export type FitReport = TenantFitResult['report'] & {
  /** One of this many learners was read. */
  readonly sampledOneIn: number;
  readonly seconds: number;
};

/**
 * If the new weights are worse, tries the current weights with the new BKT parameters, else changes nothing.
 * Replays overwrite `store`: afterwards it has the rows of the last replay, which `fitAccuracyChecked` reads.
 */
async function fitServed(
  work: FitWork,
  base: TenantModel,
  times: readonly SkillTimes[],
  store: FeatureStore,
) {
  const { log, heldOut, current, stages, onStep } = work;
  const answers = collectAnswerIndices(log, heldOut).length;
  onStep('loss of the current model on held-out learners');
  const oldLogLoss = answers === 0 ? null : await measureModelLoss(work, current, store);
  onStep('prediction terms');
  const { prediction, offsets, tried } = await fitTerms(work, base, store);
  onStep('comparison with the current model');
  const report = {
    answers,
    oldLogLoss,
    newLogLoss: await measurePredictionLoss(work, prediction, store),
    parts: tried,
  };
  if (canPublish(report)) {
    const sums = await stages.run('countItems', log, selectAllLearners(log), store);
    const { itemTerms: terms, itemPairs: pairs } = prediction;
    const items: FittedItems = { terms, offsets: offsets.items, pairs, sums };
    const model = addTerms(work, base, times, prediction, offsets);
    return { model, items, acceptsParameters: true, report: { ...report, published: true, reason: '' } };
  }
  const acceptsParameters = canPublish({ oldLogLoss, newLogLoss: await measureModelLoss(work, base, store) });
  const reason = `held-out log loss is worse than with version ${current.version}`;
  const model = acceptsParameters ? base : current;
  return {
    model,
    items: null,
    acceptsParameters,
    report: { ...report, published: false, reason },
  };
}

async function measureModelLoss(
  work: FitWork,
  model: TenantModel,
  store: FeatureStore,
): Promise<number | null> {
  const { log, currentItems } = work;
  const sets = listSetIds(work);
  const questions = sets.map((ids) => resolveQuestionModel(model, ids).combined);
  const items = currentItems ?? {
    terms: sharedArrays.floats((log.items + 1) * itemTermCount),
    offsets: sharedArrays.floats(log.items + 1),
    pairs: createEmptyTable(log.items + 1, 1),
  };
  const skillOffsets = questions.map(({ abilityOffset }) => abilityOffset);
  await replayLog(
    work,
    model,
    { mean: model.abilityOffset, skills: skillOffsets, items: items.offsets },
    store,
  );
  const skillTerms = toSharedFloats(questions.flatMap(({ terms }) => terms));
  const numbers = new Map(sets.map((ids, set) => [hashKey(combineIds(ids)), set + 1]));
  const related = questions.map(({ related }) =>
    mapRelatedKeys(related, skillPairWidth, (key) => numbers.get(key) ?? 0),
  );
  const served = { model: model.prediction, skillTerms, itemTerms: items.terms, itemPairs: items.pairs };
  return measurePredictionLoss(work, { ...served, pairs: buildPairTable(related, skillPairWidth) }, store);
}

async function fitTerms(work: FitWork, base: TenantModel, store: FeatureStore) {
  const { log, training, skillIds, stages } = work;
  const fittedOffsets = await stages.run('fitOffsets', log, training, buildTracedModel(base, skillIds));
  // Rounded as served: item figures have single precision.
  const offsets = { ...fittedOffsets, items: toSharedFloats(fittedOffsets.items) };
  await replayLog(work, base, offsets, store);
  const { parts, calibration, tried } = await chooseParts(work, store, fittedOffsets.itemVariance);
  const fit = await stages.run('createFitMemory', log, training, store, fittedOffsets.itemVariance);
  setRetriesAllowed(fit, parts.includes('retries'));
  const ranges = Uint32Array.from({ length: fit.ranges + 1 }, (_, i) => i);
  const move = (name: BlockName) =>
    runInRanges(stages, ranges, (from, to) => stages.run('moveRanges', fit, name, from, to));
  const bySkill = (name: 'stepPreviousSkills' | 'sumStreaks' | 'moveStreaks') =>
    runInRanges(stages, fit.blocks.skills.starts, (from, to) => stages.run(name, fit, from, to));
  const run = async (step: FitStep): Promise<void> => {
    if (step.kind === 'before') await bySkill('stepPreviousSkills');
    else if (step.kind === 'streaks') {
      await bySkill('sumStreaks');
      await stages.run('solveStreaks', fit);
      await bySkill('moveStreaks');
    } else {
      const { name, fresh } = step;
      await runInRanges(stages, ranges, (from, to) => stages.run('sumRanges', fit, name, fresh, from, to));
      await stages.run('solveStep', fit, name);
      await move(name);
    }
  };
  await move('weights');
  for (let sweep = 0; sweep < rules.sweeps; sweep++)
    for (const step of buildSweepSteps(selectSweepParts(sweep, parts), sweep < rules.freshSweeps))
      await run(step);
  return {
    prediction: await stages.run('buildPrediction', fit, fittedOffsets.itemVariance, calibration),
    offsets,
    tried,
  };
}

export interface PartTrial {
  readonly part: PartName;
  readonly answers: number;
  readonly without: number;
  readonly with: number;
  readonly published: boolean;
}

async function chooseParts(
  { log, training, stages, onStep }: FitWork,
  store: FeatureStore,
  itemVariance: number,
) {
  const cross = await stages.run('sampleCrossLog', log, training, store);
  const open = Array.from({ length: rules.crossFit.parts }, (_, part) =>
    stages.run('createCrossFold', cross, itemVariance, part),
  );
  const crossed = await Promise.all(open);
  const grow = async (parts: readonly PartName[]) => {
    onStep(`cross-fit of ${parts.at(-1) ?? 'skill and item terms'}`);
    const logits = sharedArrays.doubles(cross.log.skill.length);
    const losses = crossed.map((one) => stages.run('extendCrossFold', cross, one, parts, logits));
    return {
      logits,
      loss: (await Promise.all(losses)).reduce((sum, loss) => sum + loss, 0) / Math.max(1, logits.length),
    };
  };
  let parts: PartName[] = [];
  let best = await grow(parts);
  const tried: PartTrial[] = [];
  const { memory } = crossed[0] as CrossFold;
  for (const part of partNames.filter((one) => hasAnswersFor(memory, one))) {
    const saved = await Promise.all(crossed.map((one) => stages.run('saveTerms', one)));
    const grown = await grow([...parts, part]);
    const published = grown.loss < best.loss;
    const answers = cross.log.skill.length;
    tried.push({ part, answers, without: best.loss, with: grown.loss, published });
    if (published) [parts, best] = [[...parts, part], grown];
    else await Promise.all(crossed.map((one, i) => stages.run('restoreTerms', one, saved[i] ?? [])));
  }
  const calibration = await stages.run('fitCalibration', cross.log, best.logits);
  return { parts, calibration, tried };
}

function replayLog(work: FitWork, model: TenantModel, offsets: AbilityOffsets, store: FeatureStore) {
  const { log, skillIds, stages } = work;
  const traced = buildTracedModel(model, skillIds);
  return runInRanges(stages, log.starts, (from, to) =>
    stages.run('replayLearners', log, from, to, traced, offsets, store),
  );
}

async function measurePredictionLoss(
  work: FitWork,
  prediction: FittedPrediction,
  store: FeatureStore,
): Promise<number | null> {
  const { log, training, heldOut, stages } = work;
  await runInRanges(stages, log.starts, (from, to) =>
    stages.run('predictRange', log, from, to, prediction, store),
  );
  return stages.run('measureServedLoss', log, training, heldOut, store, prediction.model);
}
