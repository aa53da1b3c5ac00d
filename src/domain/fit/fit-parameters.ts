import { hasCombinations } from '../base/answer-log.js';
import { type BktParameters, defaultParameters } from '../base/bkt-parameters.js';
import { fitConstants } from '../base/fit-constants.js';
import {
  defaultSkillParameters,
  resolveSkillModel,
  type SkillModel,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { buildInitialTerms, initialPredictionModel } from '../prediction/prediction-model.js';
import { computeRapidThreshold, emptyTimes, type SkillTimes } from '../tracing/response-times.js';
import type { AnswerTrees } from './bkt/answer-trees.js';
import { type BktFit, type BktFitOptions, fitTrees, type SkillFit } from './bkt/fit-trees.js';
import type { compareHeldOutLoss, LossComparison, TracedModel } from './bkt/trace-log.js';
import { type FitWork, runInRanges } from './fit-stages.js';

export async function fitParameters(work: FitWork) {
  const { log, training, stages, onStep } = work;
  onStep('response times');
  const times = await stages.run('measureTimes', log);
  const rapidThresholds = times.map(computeRapidThreshold);
  onStep('fit options');
  const start = buildTracedModel(work.current, work.skillIds);
  const chosen = await stages.run('chooseFitOptions', log, training, { rapidThresholds, model: start });
  onStep('skill parameters');
  const options = { rapidThresholds, withDifficulty: chosen.difficultyScale > 0 };
  const fitFrom = async (model: TracedModel, warm: WarmStart): Promise<BktFit> =>
    fitSkills(work, await stages.run('growTrees', log, training, { ...options, model }), { ...chosen, warm });
  let fit = await fitFrom(
    start,
    work.skillIds.map((skillId) => work.current.skills.get(skillId)?.parameters),
  );
  // The first fit judges the other skills of an answer by the current parameters.
  if (hasCombinations(log))
    fit = await fitFrom(
      { skills: fit.skills, difficultyScale: chosen.difficultyScale },
      fit.skills.map(({ parameters }) => parameters),
    );
  onStep('comparison of the skill parameters');
  return checkParameters(work, fit, chosen, times);
}

type WarmStart = NonNullable<BktFitOptions['warm']>;

async function fitSkills(work: FitWork, trees: AnswerTrees, options: BktFitOptions): Promise<BktFit> {
  const { skillIds, stages, onStep } = work;
  let n = 0;
  return fitTrees(trees, { ...options, coldStart: true }, async (round) => {
    n++;
    let done = 0;
    const estimates = await runInRanges(stages, trees.starts, async (from, to) => {
      const rangeEstimates = await stages.run('fitSkillRange', trees, from, to, round);
      done += to - from;
      onStep(`skill parameters, round ${n}, ${done} of ${skillIds.length}`);
      return rangeEstimates;
    });
    return estimates.flat();
  });
}

/**
 * Skills that have, and would get, only a prior are judged together. Skills without held-out answers pass.
 * Judges on all answers, rapid ones included, because the service traces all of them.
 */
async function checkParameters(
  work: FitWork,
  fit: BktFit,
  { difficultyScale }: BktFitOptions,
  times: readonly SkillTimes[],
) {
  const { log, heldOut, current, skillIds, stages, version, fittedAt } = work;
  const compare = (
    candidate: TracedModel,
    before: TracedModel,
  ): Promise<ReturnType<typeof compareHeldOutLoss>> =>
    stages.run('compareHeldOutLoss', log, heldOut, candidate, before);
  const candidate = { skills: fit.skills, difficultyScale };
  const before = buildTracedModel(current, skillIds);
  const { skills: losses } = await compare(candidate, before);
  const withSameParameters = ({ skills, ...rules }: TracedModel, parameters: BktParameters): TracedModel => ({
    ...rules,
    skills: skills.map(({ difficultyMean }) => ({ parameters, difficultyMean })),
  });
  const oldPrior = current.prior ?? defaultParameters;
  const { all: coldComparison } = await compare(
    withSameParameters(candidate, fit.prior.parameters),
    withSameParameters(before, oldPrior),
  );
  const guarded = skillIds.map((skillId, k) => {
    const own = guardSkill(
      work,
      skillId,
      fit.skills[k] as SkillFit,
      losses[k] as LossComparison,
      coldComparison,
    );
    return { ...own, model: { ...own.model, times: times[k] ?? emptyTimes } };
  });
  const mergeSkills = (own: readonly GuardedSkill[]) =>
    new Map([...current.skills, ...own.map(({ skillId, model }) => [skillId, model] as const)]);
  const fitted = [...mergeSkills(guarded).values()].filter(({ source }) => source === 'fitted').length;
  const hasPrior = fitted >= fitConstants.minFittedSkills;
  const isBetter = fit.prior.source === 'prior' && canPublish(coldComparison);
  const skills = hasPrior ? guarded : guarded.map(removePrior);
  const base: TenantModel = {
    ...current,
    version,
    fittedAt,
    prior: hasPrior ? (isBetter ? fit.prior.parameters : current.prior) : null,
    difficultyScale,
    skills: mergeSkills(skills),
  };
  const reports = skills.map(({ skillId, reason }, k) => ({
    skillId,
    ...(losses[k] as LossComparison),
    published: reason === '',
    reason,
  }));
  const { all: comparison } = await compare(buildTracedModel(base, skillIds), before);
  return { base, times, skills: reports, comparison };
}

export const buildTracedModel = (model: TenantModel, skillIds: readonly string[]): TracedModel => ({
  skills: skillIds.map((skillId) => {
    const { parameters, difficultyMean } = resolveSkillModel(model, skillId);
    return { parameters, difficultyMean };
  }),
  difficultyScale: model.difficultyScale,
});

/** Also rejects NaN. */
export const canPublish = ({ oldLogLoss, newLogLoss }: Omit<LossComparison, 'answers'>): boolean =>
  (newLogLoss ?? 0) - (oldLogLoss ?? 0) <= fitConstants.heldOutSlack;

type GuardedSkill = ReturnType<typeof guardSkill>;

/** `reason` is empty if the fitted parameters are published. */
function guardSkill(
  { current, version, fittedAt }: FitWork,
  skillId: string,
  fitted: SkillFit,
  loss: LossComparison,
  cold: LossComparison,
) {
  const old = resolveSkillModel(current, skillId);
  const isCold = fitted.source === 'prior' && ['default', 'prior'].includes(old.source);
  const reason = findRejectionReason(old, fitted, isCold ? cold : loss);
  const { parameters, source, difficultyMean, learners, observations } = fitted;
  const fresh = source === 'default' ? defaultSkillParameters : { parameters, source, version, fittedAt };
  const publishedModel = reason === '' ? { ...old, ...fresh, difficultyMean } : old;
  // The initial bias: no served fit was ever accepted.
  const terms =
    current.prediction.bias === initialPredictionModel.bias
      ? buildInitialTerms(publishedModel.parameters)
      : old.terms;
  const model: SkillModel = { ...publishedModel, learners, answers: observations, terms };
  return { skillId, model, reason };
}

const tooFewLearners = `fewer than ${fitConstants.minLearners} learners`;

function findRejectionReason(old: SkillModel, { source }: SkillFit, loss: LossComparison): string {
  if (old.source === 'manual') return 'set manually';
  if (source === 'default' && old.source === 'default') return tooFewLearners;
  return canPublish(loss) ? '' : `held-out log loss is worse than with version ${old.version}`;
}

/** With fewer than five fitted skills, unfitted skills have the defaults: the API guarantees it. */
function removePrior(skill: GuardedSkill): GuardedSkill {
  if (skill.model.source !== 'prior') return skill;
  return {
    ...skill,
    model: { ...skill.model, ...defaultSkillParameters },
    reason: `${tooFewLearners}, and fewer than ${fitConstants.minFittedSkills} fitted skills to take a prior from`,
  };
}
