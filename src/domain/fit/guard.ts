/** Which of the fitted parameters may replace those in force. */

import { type BktParameters, fitBounds, fitModel } from '../base/params.js';
import {
  defaultSkillParameters,
  type SkillModel,
  type SkillParameters,
  skillModelOf,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { startModel, startTerms } from '../prediction/model.js';
import { noTimes, type SkillTimes } from '../tracing/pace.js';
import type { BktFit, SkillFit } from './bkt/fit.js';
import { type LossComparison, mayPublish, type TracedModel } from './bkt/held-out.js';
import type { SkillReport } from './report.js';

/** What the new parameters come with, and whom they have to be no worse than. */
export interface GuardInput {
  readonly skillIds: readonly string[];
  readonly current: TenantModel;
  readonly version: number;
  readonly fittedAt: string;
}

export interface GuardedSkill {
  readonly skillId: string;
  readonly model: SkillModel;
  readonly report: SkillReport;
}

export interface GuardedSkills {
  readonly skills: readonly GuardedSkill[];
  /** For skills without a fit of their own; null while too few skills have one. */
  readonly prior: BktParameters | null;
}

/** What decides, measured on the same held-out answers, and the times that come with the parameters. */
export interface GuardEvidence {
  /** The fitted parameters against those in force, by skill. */
  readonly losses: readonly LossComparison[];
  /** Every skill with the new prior against every skill with what cold ones have now. */
  readonly cold: LossComparison;
  readonly times: readonly SkillTimes[];
}

/**
 * Judges skill by skill. Skills without a fit of their own have too few answers to tell: the prior is judged once
 * for all of them, as if no skill had a fit. A skill that no held-out learner answered cannot be judged and is
 * published: it is small, and its fit is close to the prior.
 */
export function guardSkills(input: GuardInput, fit: BktFit, evidence: GuardEvidence): GuardedSkills {
  const { losses, cold, times } = evidence;
  const judged = input.skillIds.map((skillId, k) => {
    const loss = losses[k] as LossComparison;
    const fitted = fit.skills[k] as SkillFit;
    const decisive = isCold(input, k, fit) ? cold : loss;
    return judge(input, { skillId, fitted, loss, decisive, times: times[k] ?? noTimes });
  });
  if (!enoughFitted(input, judged)) return { skills: judged.map(withoutPrior), prior: null };
  const isBetter = fit.prior.source === 'prior' && mayPublish(cold);
  return { skills: judged, prior: isBetter ? fit.prior.parameters : input.current.prior };
}

/** Every skill with the same parameters. */
export const tracedAlike = ({ skills, ...rules }: TracedModel, parameters: BktParameters): TracedModel => ({
  ...rules,
  skills: skills.map(({ difficultyMean }) => ({ parameters, difficultyMean })),
});

/** A skill that has no fit of its own, neither in force nor now. */
const isCold = ({ current, skillIds }: GuardInput, skill: number, fit: BktFit): boolean =>
  fit.skills[skill]?.source === 'prior' &&
  ['default', 'prior'].includes(skillModelOf(current, skillIds[skill] ?? '').source);

/** Over all answers of several skills. */
export function poolLosses(losses: readonly LossComparison[]): LossComparison {
  const answers = losses.reduce((sum, loss) => sum + loss.answers, 0);
  const mean = (of: (loss: LossComparison) => number): number =>
    losses.reduce((sum, loss) => sum + of(loss) * loss.answers, 0) / Math.max(1, answers);
  return { answers, candidate: mean(({ candidate }) => candidate), current: mean(({ current }) => current) };
}

interface Judged {
  readonly skillId: string;
  readonly fitted: SkillFit;
  readonly loss: LossComparison;
  /** What decides: the skill's own loss, or that of the prior. */
  readonly decisive: LossComparison;
  readonly times: SkillTimes;
}

function judge(input: GuardInput, { skillId, fitted, loss, decisive, times }: Judged): GuardedSkill {
  const old = skillModelOf(input.current, skillId);
  const reason = heldBackBecause(old, fitted, decisive);
  const parameters = reason === '' ? newParameters(input, fitted) : old;
  return {
    skillId,
    model: {
      ...pickParameters(parameters),
      learners: fitted.learners,
      answers: fitted.observations,
      difficultyMean: reason === '' ? fitted.difficultyMean : old.difficultyMean,
      times,
      terms: isStart(input.current) ? startTerms(parameters.parameters) : old.terms,
      abilityOffset: old.abilityOffset,
    },
    report: {
      skillId,
      answers: loss.answers,
      oldLogLoss: loss.answers === 0 ? null : loss.current,
      newLogLoss: loss.answers === 0 ? null : loss.candidate,
      published: reason === '',
      reason,
    },
  };
}

/** Whether the served probability was never fitted: it then starts from BKT's own. */
const isStart = ({ prediction }: TenantModel): boolean => prediction.bias === startModel.bias;

/** Empty for parameters that are published. */
function heldBackBecause(old: SkillParameters, { source }: SkillFit, loss: LossComparison): string {
  if (old.source === 'manual') return 'set by hand';
  if (source === 'default' && old.source === 'default') return tooFewLearners;
  return mayPublish(loss) ? '' : `held-out log loss is worse than with version ${old.version}`;
}

const tooFewLearners = `fewer than ${fitModel.minLearners} learners`;

const newParameters = (
  { version, fittedAt }: GuardInput,
  { parameters, source }: SkillFit,
): SkillParameters =>
  source === 'default' ? defaultSkillParameters : { parameters, source, version, fittedAt };

const pickParameters = ({ parameters, source, version, fittedAt }: SkillParameters): SkillParameters => ({
  parameters,
  source,
  version,
  fittedAt,
});

/** Counts skills as they will be served, those without an answer in this fit too. */
function enoughFitted({ current, skillIds }: GuardInput, judged: readonly GuardedSkill[]): boolean {
  const inFit = new Set(skillIds);
  const others = [...current.skills].filter(([skillId]) => !inFit.has(skillId)).map(([, skill]) => skill);
  const fitted = [...judged.map(({ model }) => model), ...others].filter(({ source }) => source === 'fitted');
  return fitted.length >= fitModel.minFittedSkills;
}

/** The contract: where fewer than five skills are fitted, a skill without a fit has the defaults. */
function withoutPrior(skill: GuardedSkill): GuardedSkill {
  if (skill.model.source !== 'prior') return skill;
  return {
    ...skill,
    model: { ...skill.model, ...defaultSkillParameters },
    report: {
      ...skill.report,
      published: false,
      reason: `${tooFewLearners}, and fewer than ${fitModel.minFittedSkills} fitted skills to take a prior from`,
    },
  };
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
