/**
 * The served probability's part of a fit: offsets, replay, weights and terms, items; then the judgement of all that
 * would be served. Where the new weights do worse than what is in force, the old ones are tried with the new
 * parameters of BKT; where those do worse too, nothing changes.
 */

import { everyone, placesOf, shared, sharedFloats } from '../base/answer-log.js';
import { skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { itemTermCount, skillTermCount } from '../prediction/model.js';
import { comparisonOf, mayPublish, tracedBy } from './parameters.js';
import { type BlockName, type FittedPrediction, fitSteps } from './prediction/blocks.js';
import type { AbilityOffsets } from './prediction/offsets.js';
import type { FeatureStore } from './prediction/replay.js';
import { type FitWork, inRanges } from './stages.js';

/**
 * @param base the current model with the new parameters of BKT
 * @param store is left as replayed by the offsets that will be served: the new ones, or those in force
 * @returns items null: those of the model in force go on; and whether the parameters of BKT in the model are the new ones
 */
export async function fitServed(work: FitWork, base: TenantModel, store: FeatureStore) {
  const { log, heldOut, current, stages, onStep } = work;
  const answers = placesOf(log, heldOut).length;
  onStep('what is in force, on learners whom the fit does not see');
  const before = answers === 0 ? 0 : await judgeModel(work, current, store);
  onStep('served probability');
  const { prediction, offsets } = await fitTerms(work, base, store);
  onStep('judgement');
  const after = await judge(work, prediction, store);
  const report = comparisonOf({ answers, candidate: after, current: before });
  if (answers === 0 || mayPublish({ candidate: after, current: before })) {
    const sums = await stages.run('countItems', log, everyone(log), store);
    return {
      model: withTerms(work, base, prediction, offsets),
      items: { terms: prediction.itemTerms, offsets: offsets.items, sums },
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
  const own = skills.map(({ abilityOffset }) => abilityOffset);
  await replay(work, model, { mean: model.abilityOffset, skills: own, items: items.offsets }, store);
  const skillTerms = sharedFloats(skills.flatMap(({ terms }) => terms));
  return judge(work, { model: model.prediction, skillTerms, itemTerms: items.terms }, store);
}

async function fitTerms(work: FitWork, base: TenantModel, store: FeatureStore) {
  const { log, training, skillIds, stages } = work;
  const found = await stages.run('fitOffsets', log, training, tracedBy(base, skillIds));
  // As they are served: item figures have single precision.
  const offsets = { ...found, items: sharedFloats(found.items) };
  await replay(work, base, offsets, store);
  const fit = await stages.run('newFitMemory', log, training, store, found.itemVariance);
  const ranges = Uint32Array.from({ length: fit.ranges + 1 }, (_, i) => i);
  const move = (name: BlockName) =>
    inRanges(stages, ranges, (from, to) => stages.run('moveRanges', fit, name, from, to));
  await move('weights');
  for (const step of fitSteps()) {
    await inRanges(stages, ranges, (from, to) => stages.run('sumRanges', fit, step, from, to));
    await stages.run('solveStep', fit, step.name);
    await move(step.name);
  }
  return { prediction: await stages.run('fittedPrediction', fit, found.itemVariance), offsets };
}

function replay(work: FitWork, model: TenantModel, offsets: AbilityOffsets, store: FeatureStore) {
  const { log, skillIds, stages } = work;
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
  { model, skillTerms }: FittedPrediction,
  offsets: AbilityOffsets,
): TenantModel {
  const skills = new Map(base.skills);
  for (const [k, skillId] of skillIds.entries()) {
    const terms = [...skillTerms.subarray(k * skillTermCount, (k + 1) * skillTermCount)];
    const abilityOffset = offsets.skills[k] ?? 0;
    skills.set(skillId, { ...skillModelOf(base, skillId), terms, abilityOffset });
  }
  return { ...base, skills, prediction: model, abilityOffset: offsets.mean };
}
