import { type AnswerLog, type LearnerSelection, selectAllLearners } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/bkt-parameters.js';
import {
  resolveQuestionModel,
  resolveSkillModel,
  unfittedModel,
} from '../../domain/catalogue/tenant-model.js';
import { type BktFitOptions, fitTrees } from '../../domain/fit/bkt/fit-trees.js';
import { buildTracedModel } from '../../domain/fit/fit-parameters.js';
import type { StageRunner } from '../../domain/fit/fit-stages.js';
import { fitTenant, type TenantFitResult } from '../../domain/fit/fit-tenant.js';
import { listSetIds } from '../../domain/fit/fitted-model.js';
import { buildItemModel } from '../../domain/fit/prediction/replay-log.js';
import { computeRapidThreshold } from '../../domain/tracing/response-times.js';
import { itemKey, type ServedModel } from './replay.js';

export type TrainedModels = Awaited<ReturnType<typeof trainModels>>;

export async function trainModels(
  log: AnswerLog,
  stages: StageRunner,
  onStep: (step: string) => void = () => undefined,
) {
  const since = performance.now();
  const watch = watchBkt(stages);
  // No learner is held out: the test learners judge the fit.
  const training = selectAllLearners(log);
  const skillIds = Array.from({ length: log.skills }, (_, skill) => String(skill));
  const input = { log, skillIds, training, current: unfittedModel, version: 1, fittedAt: epoch };
  const fitted = await fitTenant(input, watch.stages, onStep);
  const seconds = (performance.now() - since) / 1000;
  const peakBytes = 1024 * process.resourceUsage().maxRSS;
  const bkt = await fitPlainBkt(log, training, skillIds, fitted, watch.seen.chosen, stages);
  const [{ iterations, from, to }, { threads }] = [watch.seen, stages];
  const served: ServedModel = {
    model: fitted.model,
    sets: listSetIds(input),
    itemOf: createItemLookup(fitted),
  };
  return {
    models: { bkt, served },
    figures: {
      /** BKT alone, including the preparation of its data. `iterations`: EM iterations of all skills. */
      fit: { seconds: (to - from) / 1000, iterations, observations: log.correct.length, threads },
      /** `peakBytes`: peak memory of the process so far. */
      servedFit: { seconds, peakBytes, ...countPairs(fitted) },
      parts: fitted.report.served.parts,
    },
  };
}

/** Pairs that have terms. */
const countPairs = ({ model, items }: TenantFitResult) => ({
  skillPairs: [...model.skills.values()].reduce((sum, { related }) => sum + related.keys.length, 0),
  itemPairs: items?.pairs.terms.filter((term) => term !== 0).length ?? 0,
});

function createItemLookup({ items }: TenantFitResult): ServedModel['itemOf'] {
  if (items === null) return () => null;
  return (item) => (items.sums.answers[item] === 0 ? null : buildItemModel(items, item, itemKey));
}

const epoch = new Date(0).toISOString();

/** Records the BKT stages, from `growTrees` to the last `fitRange`. */
function watchBkt(stages: StageRunner) {
  const seen = { chosen: null as BktFitOptions | null, iterations: 0, from: 0, to: 0 };
  const run: StageRunner['run'] = async (name, ...args) => {
    if (name === 'growTrees') seen.from ||= performance.now();
    const result = await stages.run(name, ...args);
    if (name === 'fitSkillRange') seen.to = performance.now();
    if (typeof result !== 'object' || result === null) return result;
    if ('difficultyScale' in result) seen.chosen = result;
    if (Array.isArray(result))
      for (const one of result) if ('iterations' in one) seen.iterations += one.iterations;
    return result;
  };
  return { seen, stages: { threads: stages.threads, run } };
}

/** Plain BKT ignores difficulty, so it needs a separate fit if the served model uses difficulty. */
async function fitPlainBkt(
  log: AnswerLog,
  training: LearnerSelection,
  skillIds: readonly string[],
  { model }: TenantFitResult,
  chosen: BktFitOptions | null,
  stages: StageRunner,
): Promise<BktParameters[]> {
  if (chosen === null || chosen.difficultyScale === 0)
    return skillIds.map((skillId) => resolveSkillModel(model, skillId).parameters);
  const rapidThresholds = listSetIds({ log, skillIds }).map((ids) =>
    computeRapidThreshold(resolveQuestionModel(model, ids).combined.times),
  );
  const options = { ...chosen, difficultyScale: 0 };
  const traced = buildTracedModel(model, skillIds);
  const trees = await stages.run('growTrees', log, training, { rapidThresholds, model: traced });
  const { skills } = await fitTrees(trees, options, (round) =>
    stages.run('fitSkillRange', trees, 0, log.skills, round),
  );
  return skills.map(({ parameters }) => parameters);
}
