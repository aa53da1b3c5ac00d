import { type BktParameters, defaultParameters } from '../base/bkt-parameters.js';
import { fitModel } from '../base/fit-constants.js';
import {
  defaultSkillParameters,
  type SkillModel,
  skillModelOf,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { startModel, startTerms } from '../prediction/model.js';
import { noTimes, rapidThreshold, type SkillTimes } from '../tracing/pace.js';
import { type BktFit, type FitOptions, fitTrees, type SkillFit } from './bkt/fit.js';
import type { Comparison, TracedModel } from './bkt/trace.js';
import type { AnswerTrees } from './bkt/trees.js';
import { type FitWork, inRanges } from './stages.js';

export async function fitParameters(work: FitWork) {
  const { log, training, stages, onStep } = work;
  onStep('solution times');
  const times = await stages.run('measureTimes', log);
  const rapidBelow = times.map(rapidThreshold);
  onStep('options of the fit');
  const chosen = await stages.run('chooseFitOptions', log, training, { rapidBelow });
  onStep('parameters of the skills');
  const options = { rapidBelow, withDifficulty: chosen.difficultyScale > 0 };
  const trees = await stages.run('growTrees', log, training, options);
  const fit = await fitSkills(work, trees, chosen);
  onStep('judgement');
  return judgeParameters(work, fit, chosen, times);
}

async function fitSkills(work: FitWork, trees: AnswerTrees, options: FitOptions): Promise<BktFit> {
  const { skillIds, current, stages, onStep } = work;
  const warm = skillIds.map((skillId) => current.skills.get(skillId)?.parameters);
  let n = 0;
  return fitTrees(trees, { ...options, warm, coldStart: true }, async (round) => {
    n++;
    let done = 0;
    const estimates = await inRanges(stages, trees.starts, async (from, to) => {
      const own = await stages.run('fitRange', trees, from, to, round);
      done += to - from;
      onStep(`parameters of the skills, round ${n}, ${done} of ${skillIds.length}`);
      return own;
    });
    return estimates.flat();
  });
}

/** Skills without a fit are compared by the prior. Skills without held-out answers pass. */
async function judgeParameters(
  work: FitWork,
  fit: BktFit,
  { difficultyScale }: FitOptions,
  times: readonly SkillTimes[],
) {
  const { log, heldOut, current, skillIds, stages, version, fittedAt } = work;
  const compare = (candidate: TracedModel, before: TracedModel): Promise<Comparison[]> =>
    stages.run('heldOutLogLoss', log, heldOut, candidate, before);
  const candidate = { skills: fit.skills, difficultyScale };
  const before = tracedBy(current, skillIds);
  const losses = await compare(candidate, before);
  const alike = ({ skills, ...rules }: TracedModel, parameters: BktParameters): TracedModel => ({
    ...rules,
    skills: skills.map(({ difficultyMean }) => ({ parameters, difficultyMean })),
  });
  const oldPrior = current.prior ?? defaultParameters;
  const cold = poolLosses(await compare(alike(candidate, fit.prior.parameters), alike(before, oldPrior)));
  const guarded = skillIds.map((skillId, k) => {
    const own = guard(work, skillId, fit.skills[k] as SkillFit, losses[k] as Comparison, cold);
    return { ...own, model: { ...own.model, times: times[k] ?? noTimes } };
  });
  const skillsWith = (own: readonly GuardedSkill[]) =>
    new Map([...current.skills, ...own.map(({ skillId, model }) => [skillId, model] as const)]);
  const fitted = [...skillsWith(guarded).values()].filter(({ source }) => source === 'fitted').length;
  const hasPrior = fitted >= fitModel.minFittedSkills;
  const isBetter = fit.prior.source === 'prior' && mayPublish(cold);
  const skills = hasPrior ? guarded : guarded.map(withoutPrior);
  const base: TenantModel = {
    ...current,
    version,
    fittedAt,
    prior: hasPrior ? (isBetter ? fit.prior.parameters : current.prior) : null,
    difficultyScale,
    skills: skillsWith(skills),
  };
  const reports = skills.map(({ skillId, reason }, k) => ({
    skillId,
    ...(losses[k] as Comparison),
    published: reason === '',
    reason,
  }));
  const passed = await compare(tracedBy(base, skillIds), before);
  return { base, skills: reports, comparison: poolLosses(passed) };
}

export const tracedBy = (model: TenantModel, skillIds: readonly string[]): TracedModel => ({
  skills: skillIds.map((skillId) => {
    const { parameters, difficultyMean } = skillModelOf(model, skillId);
    return { parameters, difficultyMean };
  }),
  difficultyScale: model.difficultyScale,
});

function poolLosses(losses: readonly Comparison[]): Comparison {
  const answers = losses.reduce((sum, loss) => sum + loss.answers, 0);
  const mean = (of: 'oldLogLoss' | 'newLogLoss'): number | null =>
    answers === 0 ? null : losses.reduce((sum, loss) => sum + (loss[of] ?? 0) * loss.answers, 0) / answers;
  return { answers, oldLogLoss: mean('oldLogLoss'), newLogLoss: mean('newLogLoss') };
}

/** Also rejects NaN. */
export const mayPublish = ({ oldLogLoss, newLogLoss }: Omit<Comparison, 'answers'>): boolean =>
  (newLogLoss ?? 0) - (oldLogLoss ?? 0) <= fitModel.heldOutSlack;

type GuardedSkill = ReturnType<typeof guard>;

/** `reason` is empty if the fitted parameters are published. */
function guard(
  { current, version, fittedAt }: FitWork,
  skillId: string,
  fitted: SkillFit,
  loss: Comparison,
  cold: Comparison,
) {
  const old = skillModelOf(current, skillId);
  const isCold = fitted.source === 'prior' && ['default', 'prior'].includes(old.source);
  const reason = heldBackBecause(old, fitted, isCold ? cold : loss);
  const { parameters, source, difficultyMean, learners, observations } = fitted;
  const fresh = source === 'default' ? defaultSkillParameters : { parameters, source, version, fittedAt };
  const served = reason === '' ? { ...old, ...fresh, difficultyMean } : old;
  // Terms that were never fitted start from BKT.
  const terms = current.prediction.bias === startModel.bias ? startTerms(served.parameters) : old.terms;
  const model: SkillModel = { ...served, learners, answers: observations, terms };
  return { skillId, model, reason };
}

const tooFewLearners = `fewer than ${fitModel.minLearners} learners`;

function heldBackBecause(old: SkillModel, { source }: SkillFit, loss: Comparison): string {
  if (old.source === 'manual') return 'set by hand';
  if (source === 'default' && old.source === 'default') return tooFewLearners;
  return mayPublish(loss) ? '' : `held-out log loss is worse than with version ${old.version}`;
}

/** The API guarantees defaults for unfitted skills below five fitted ones. */
function withoutPrior(skill: GuardedSkill): GuardedSkill {
  if (skill.model.source !== 'prior') return skill;
  return {
    ...skill,
    model: { ...skill.model, ...defaultSkillParameters },
    reason: `${tooFewLearners}, and fewer than ${fitModel.minFittedSkills} fitted skills to take a prior from`,
  };
}
