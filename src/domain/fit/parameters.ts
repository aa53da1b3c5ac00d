/** The BKT part of a fit: solution times, options, parameters, and which of them may replace those in force. */

import { type BktParameters, defaultParameters, fitBounds, fitModel } from '../base/params.js';
import {
  defaultSkillParameters,
  type SkillModel,
  skillModelOf,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { startModel, startTerms } from '../prediction/model.js';
import { noTimes, rapidThreshold, type SkillTimes } from '../tracing/pace.js';
import { type BktFit, type FitOptions, fitTrees, type SkillFit } from './bkt/fit.js';
import type { LossComparison, TracedModel } from './bkt/trace.js';
import type { AnswerTrees } from './bkt/trees.js';
import { type FitWork, inRanges } from './stages.js';

/** Mean log loss on the same held-out answers, with what was in force and with what was fitted; null: no answers. */
export const comparisonOf = ({ answers, candidate, current }: LossComparison) => ({
  answers,
  oldLogLoss: answers === 0 ? null : current,
  newLogLoss: answers === 0 ? null : candidate,
});

export type Comparison = ReturnType<typeof comparisonOf>;

/** @returns the model in force with the parameters that passed, the skills' reports, and a comparison over all skills */
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

async function judgeParameters(
  work: FitWork,
  fit: BktFit,
  { difficultyScale, bounds }: FitOptions,
  times: readonly SkillTimes[],
) {
  const { log, heldOut, current, skillIds, stages, version, fittedAt } = work;
  const compare = (candidate: TracedModel, before: TracedModel): Promise<LossComparison[]> =>
    stages.run('heldOutLogLoss', log, heldOut, candidate, before);
  const candidate = { skills: fit.skills, difficultyScale, bounds };
  const before = tracedBy(current, skillIds);
  const losses = await compare(candidate, before);
  // Every skill with the new prior against every skill with what cold ones have now.
  const cold = await compare(
    tracedAlike(candidate, fit.prior.parameters),
    tracedAlike(before, current.prior ?? defaultParameters),
  );
  const { skills, prior } = guardSkills(work, fit, losses, poolLosses(cold), times);
  const base: TenantModel = {
    ...current,
    version,
    fittedAt,
    prior,
    difficultyScale,
    bounds: bounds.pGuess.high === fitBounds.narrow.pGuess.high ? 'narrow' : 'wide',
    // Skills that had no answer in this fit stay as they were.
    skills: new Map([
      ...current.skills,
      ...skills.map(({ report, model }) => [report.skillId, model] as const),
    ]),
  };
  const passed = await compare(tracedBy(base, skillIds), before);
  return { base, skills: skills.map(({ report }) => report), comparison: comparisonOf(poolLosses(passed)) };
}

/** BKT as the model serves these skills. */
export const tracedBy = (model: TenantModel, skillIds: readonly string[]): TracedModel => ({
  skills: skillIds.map((skillId) => {
    const { parameters, difficultyMean } = skillModelOf(model, skillId);
    return { parameters, difficultyMean };
  }),
  difficultyScale: model.difficultyScale,
  bounds: fitBounds[model.bounds],
});

/** Every skill with the same parameters. */
const tracedAlike = ({ skills, ...rules }: TracedModel, parameters: BktParameters): TracedModel => ({
  ...rules,
  skills: skills.map(({ difficultyMean }) => ({ parameters, difficultyMean })),
});

/** Over all answers of several skills. */
function poolLosses(losses: readonly LossComparison[]): LossComparison {
  const answers = losses.reduce((sum, loss) => sum + loss.answers, 0);
  const mean = (of: 'candidate' | 'current'): number =>
    losses.reduce((sum, loss) => sum + loss[of] * loss.answers, 0) / Math.max(1, answers);
  return { answers, candidate: mean('candidate'), current: mean('current') };
}

/** Held-out log loss gets worse by no more than the slack. A loss that is no number is worse. */
export const mayPublish = ({ candidate, current }: Pick<LossComparison, 'candidate' | 'current'>): boolean =>
  candidate - current <= fitModel.heldOutSlack;

type GuardedSkill = ReturnType<typeof guard>;

/**
 * Judges skill by skill. Skills without a fit of their own have too few answers to judge by: the prior is judged once
 * for all of them, as if no skill had a fit. A skill that no held-out learner answered cannot be judged and is
 * published: it is small, and its fit is close to the prior.
 *
 * @returns the prior for skills without a fit of their own too; null while too few skills have one
 */
function guardSkills(
  work: FitWork,
  fit: BktFit,
  losses: readonly LossComparison[],
  cold: LossComparison,
  times: readonly SkillTimes[],
) {
  const skills = work.skillIds.map((skillId, k) => {
    const fitted = fit.skills[k] as SkillFit;
    return guard(work, skillId, fitted, losses[k] as LossComparison, cold, times[k] ?? noTimes);
  });
  if (!enoughFitted(work, skills)) return { skills: skills.map(withoutPrior), prior: null };
  const isBetter = fit.prior.source === 'prior' && mayPublish(cold);
  return { skills, prior: isBetter ? fit.prior.parameters : work.current.prior };
}

function guard(
  { current, version, fittedAt }: FitWork,
  skillId: string,
  fitted: SkillFit,
  loss: LossComparison,
  cold: LossComparison,
  times: SkillTimes,
) {
  const old = skillModelOf(current, skillId);
  // Without a fit of its own, neither in force nor now.
  const isCold = fitted.source === 'prior' && ['default', 'prior'].includes(old.source);
  const reason = heldBackBecause(old, fitted, isCold ? cold : loss);
  const { parameters, source, difficultyMean, learners, observations } = fitted;
  const fresh = source === 'default' ? defaultSkillParameters : { parameters, source, version, fittedAt };
  const served = reason === '' ? { ...old, ...fresh, difficultyMean } : old;
  // Where the served probability was never fitted, it starts from BKT's own.
  const terms = current.prediction.bias === startModel.bias ? startTerms(served.parameters) : old.terms;
  const model: SkillModel = { ...served, learners, answers: observations, times, terms };
  return {
    model,
    /** Whether the fit brought what is in force, and why not. */
    report: { skillId, ...comparisonOf(loss), published: reason === '', reason },
  };
}

const tooFewLearners = `fewer than ${fitModel.minLearners} learners`;

/** Empty for parameters that are published. */
function heldBackBecause(old: SkillModel, { source }: SkillFit, loss: LossComparison): string {
  if (old.source === 'manual') return 'set by hand';
  if (source === 'default' && old.source === 'default') return tooFewLearners;
  return mayPublish(loss) ? '' : `held-out log loss is worse than with version ${old.version}`;
}

/** Counts skills as they will be served, those without an answer in this fit too. */
function enoughFitted({ current }: FitWork, skills: readonly GuardedSkill[]): boolean {
  const sources = new Map([...current.skills].map(([skillId, { source }]) => [skillId, source]));
  for (const { report, model } of skills) sources.set(report.skillId, model.source);
  return [...sources.values()].filter((source) => source === 'fitted').length >= fitModel.minFittedSkills;
}

/** The contract: where fewer than five skills are fitted, a skill without a fit has the defaults. */
function withoutPrior(skill: GuardedSkill): GuardedSkill {
  if (skill.model.source !== 'prior') return skill;
  const reason = `${tooFewLearners}, and fewer than ${fitModel.minFittedSkills} fitted skills to take a prior from`;
  return {
    model: { ...skill.model, ...defaultSkillParameters },
    report: { ...skill.report, published: false, reason },
  };
}
