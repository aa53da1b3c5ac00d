import { findPlacement, type Placement } from '../catalogue/catalogue.js';
import { resolveSkillModel, type SkillModel, type TenantModel } from '../catalogue/tenant-model.js';
import { applyForgetting, computeEffectiveMastery, computeRetention } from '../tracing/bkt.js';
import { newSkill, type SkillState } from '../tracing/learner-states.js';
import { momentumConstants } from '../tracing/tracing-constants.js';

export interface SkillView {
  readonly skillId: string;
  readonly state: SkillState;
  readonly model: SkillModel;
  readonly placement: Placement;
  /** After forgetting. */
  readonly mastery: number;
  /** Remaining share of mastery above pInit. */
  readonly retention: number;
}

export type SkillStates = Iterable<readonly [skillId: string, state: SkillState]>;

/** @param at Unix milliseconds */
export const buildSkillViews = (skills: SkillStates, model: TenantModel, at: number): SkillView[] =>
  Array.from(skills, ([skillId, state]) => buildSkillView(skillId, state, model, at));

export function buildSkillView(
  skillId: string,
  state: SkillState,
  tenantModel: TenantModel,
  at: number,
): SkillView {
  const model = resolveSkillModel(tenantModel, skillId);
  const { pInit } = model.parameters;
  const retention = computeRetention(state, at);
  return {
    skillId,
    state,
    model,
    placement: findPlacement(tenantModel.catalogue, skillId),
    mastery: state.attempts === 0 ? pInit : applyForgetting(state.mastery, pInit, retention),
    retention,
  };
}

export const buildUnseenView = (skillId: string, model: TenantModel, at: number): SkillView =>
  buildSkillView(skillId, newSkill(resolveSkillModel(model, skillId).parameters), model, at);

/** Smaller than a view, because a learner may have thousands of skills. */
export interface PractisedSkill {
  readonly state: Pick<SkillState, 'attempts' | 'correctDays' | 'mastery' | 'lastAttemptAt'>;
  readonly placement: Pick<Placement, 'weight'>;
  readonly pInit: number;
}

export function addPractisedSkill(
  skills: Map<string, PractisedSkill>,
  skillId: string,
  state: PractisedSkill['state'],
  model: TenantModel,
): void {
  const before = skills.get(skillId);
  const placement = before?.placement ?? findPlacement(model.catalogue, skillId);
  const pInit = before?.pInit ?? resolveSkillModel(model, skillId).parameters.pInit;
  skills.set(skillId, { state, placement, pInit });
}

export function collectPractisedSkills(skills: SkillStates, model: TenantModel): Map<string, PractisedSkill> {
  const practised = new Map<string, PractisedSkill>();
  for (const [skillId, state] of skills) addPractisedSkill(practised, skillId, state, model);
  return practised;
}

/** Weighted mean after forgetting; null if no skill has enough attempts. */
export function computeMeanMastery(skills: ReadonlyMap<string, PractisedSkill>, at: number): number | null {
  let [weights, sum] = [0, 0];
  for (const { state, placement, pInit } of skills.values()) {
    if (state.attempts < momentumConstants.minAttempts) continue;
    weights += placement.weight;
    sum += placement.weight * computeEffectiveMastery(pInit, state, at);
  }
  return weights === 0 ? null : sum / weights;
}
