/**
 * The served probability's part of a fit: offsets, replay, weights and terms, items; then the judgement of all that
 * would be served. Where the new weights do worse than what is in force, the old ones are tried with the new
 * parameters of BKT; where those do worse too, nothing changes.
 */

import { everyone, placesOf, shared, sharedFloats } from '../base/answer-log.js';
import { skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { itemTermCount, skillTermCount } from '../prediction/model.js';
import { mayPublish, tracedBy } from './parameters.js';
import { type BlockName, type FittedPrediction, fitSteps } from './prediction/blocks.js';
import type { AbilityOffsets } from './prediction/offsets.js';
import type { FeatureStore, FittedItems, ItemFigures } from './prediction/replay.js';
import { comparisonOf, type FitReport } from './report.js';
import { type FitWork, inRanges } from './stages.js';

export interface ServedFit {
  readonly model: TenantModel;
  /** null: those of the model in force go on. */
  readonly items: FittedItems | null;
  /** Whether the parameters of BKT in `model` are the new ones. */
  readonly parametersHold: boolean;
  readonly report: FitReport['served'];
}

/**
 * @param base the current model with the new parameters of BKT
 * @param store is left as replayed by the offsets that will be served: the new ones, or those in force
 */
export async function fitServed(work: FitWork, base: TenantModel, store: FeatureStore): Promise<ServedFit> {
  const { log, heldOut, current, stages, onStep } = work;
  const answers = placesOf(log, heldOut).length;
  onStep('what is in force, on learners whom the fit does not see');
  const before = answers === 0 ? 0 : await judgeModel(work, current, store);
  onStep('served probability');
  const fitted = await fitTerms(work, base, store);
  onStep('judgement');
  const after = await judge(work, fitted.prediction, store);
  const report = comparisonOf({ answers, candidate: after, current: before });
  if (answers === 0 || mayPublish({ candidate: after, current: before })) {
    const sums = await stages.run('countItems', log, everyone(log), store);
    return {
      model: withTerms(work, base, fitted),
      items: { ...fitted.items, sums },
      parametersHold: true,
      report: { ...report, published: true, reason: '' },
    };
  }
  const parametersHold = mayPublish({ candidate: await judgeModel(work, base, store), current: before });
  const reason = `held-out log loss is worse than with version ${current.version}`;
  return {
    model: parametersHold ? base : current,
    items: null,
    parametersHold,
    report: { ...report, published: false, reason },
  };
}

/** Replays the log as the model serves it, with the items' figures in force. @returns held-out loss */
async function judgeModel(work: FitWork, model: TenantModel, store: FeatureStore): Promise<number> {
  const { skillIds, log, currentItems } = work;
  const skills = skillIds.map((skillId) => skillModelOf(model, skillId));
  const items = currentItems ?? {
    terms: shared.floats((log.items + 1) * itemTermCount),
    offsets: shared.floats(log.items + 1),
  };
  const offsets = {
    mean: model.abilityOffset,
    skills: skills.map(({ abilityOffset }) => abilityOffset),
    items: items.offsets,
  };
  await replay(work, model, offsets, store);
  const skillTerms = sharedFloats(skills.flatMap(({ terms }) => terms));
  return judge(work, { model: model.prediction, skillTerms, itemTerms: items.terms }, store);
}

interface FittedTerms {
  readonly prediction: FittedPrediction;
  readonly offsets: AbilityOffsets;
  readonly items: ItemFigures;
}

async function fitTerms(work: FitWork, base: TenantModel, store: FeatureStore): Promise<FittedTerms> {
  const { log, training, skillIds, stages } = work;
  const found = await stages.run('fitOffsets', log, training, tracedBy(base, skillIds));
  // As they are served: item figures have single precision.
  const items = sharedFloats(found.items);
  const offsets = { ...found, items };
  await replay(work, base, offsets, store);
  const prediction = await fitPrediction(work, store, found.itemVariance);
  return { prediction, offsets, items: { terms: prediction.itemTerms, offsets: items } };
}

async function fitPrediction(
  { log, training, stages }: FitWork,
  store: FeatureStore,
  itemVariance: number,
): Promise<FittedPrediction> {
  const fit = await stages.run('newFitMemory', log, training, store, itemVariance);
  const ranges = Uint32Array.from({ length: fit.ranges + 1 }, (_, i) => i);
  const move = (name: BlockName) =>
    inRanges(stages, ranges, (from, to) => stages.run('moveRanges', fit, name, from, to));
  await move('weights');
  for (const step of fitSteps()) {
    await inRanges(stages, ranges, (from, to) => stages.run('sumRanges', fit, step, from, to));
    await stages.run('solveStep', fit, step.name);
    await move(step.name);
  }
  return stages.run('fittedPrediction', fit, itemVariance);
}

function replay(
  { log, skillIds, stages }: FitWork,
  model: TenantModel,
  offsets: AbilityOffsets,
  store: FeatureStore,
) {
  const traced = tracedBy(model, skillIds);
  return inRanges(stages, log.starts, (from, to) =>
    stages.run('replayLearners', log, from, to, traced, offsets, store),
  );
}

/** After the replay: the held-out loss, with items as the training learners' answers leave them. */
async function judge(work: FitWork, prediction: FittedPrediction, store: FeatureStore): Promise<number> {
  const { log, training, heldOut, stages } = work;
  await inRanges(stages, log.starts, (from, to) =>
    stages.run('predictRange', log, from, to, prediction, store),
  );
  return stages.run('judgeServed', log, training, heldOut, store, prediction.model.itemPriorAnswers);
}

function withTerms(
  { skillIds }: FitWork,
  base: TenantModel,
  { prediction, offsets }: FittedTerms,
): TenantModel {
  const skills = new Map(base.skills);
  for (const [k, skillId] of skillIds.entries()) {
    skills.set(skillId, {
      ...skillModelOf(base, skillId),
      terms: [...prediction.skillTerms.subarray(k * skillTermCount, (k + 1) * skillTermCount)],
      abilityOffset: offsets.skills[k] ?? 0,
    });
  }
  return { ...base, skills, prediction: prediction.model, abilityOffset: offsets.mean };
}
