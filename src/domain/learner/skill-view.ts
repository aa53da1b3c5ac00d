import { type Placement, placementOf } from '../catalogue/catalogue.js';
import { type SkillModel, skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { effectiveMastery, faded, retentionOf } from '../tracing/bkt.js';
import { newSkill, type SkillState } from '../tracing/states.js';
import { momentumModel } from '../tracing/tracing-constants.js';

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
export const viewSkills = (skills: SkillStates, model: TenantModel, at: number): SkillView[] =>
  Array.from(skills, ([skillId, state]) => viewSkill(skillId, state, model, at));

export function viewSkill(
  skillId: string,
  state: SkillState,
  tenantModel: TenantModel,
  at: number,
): SkillView {
  const model = skillModelOf(tenantModel, skillId);
  const { pInit } = model.parameters;
  const retention = retentionOf(state, at);
  return {
    skillId,
    state,
    model,
    placement: placementOf(tenantModel.catalogue, skillId),
    mastery: state.attempts === 0 ? pInit : faded(state.mastery, pInit, retention),
    retention,
  };
}

export const viewUnseen = (skillId: string, model: TenantModel, at: number): SkillView =>
  viewSkill(skillId, newSkill(skillModelOf(model, skillId).parameters), model, at);

/** Smaller than a view, because a learner may have thousands of skills. */
export interface PractisedSkill {
  readonly state: Pick<SkillState, 'attempts' | 'correctDays' | 'mastery' | 'lastAttemptAt'>;
  readonly placement: Pick<Placement, 'weight'>;
  readonly pInit: number;
}

export function practise(
  skills: Map<string, PractisedSkill>,
  skillId: string,
  state: PractisedSkill['state'],
  model: TenantModel,
): void {
  const before = skills.get(skillId);
  const placement = before?.placement ?? placementOf(model.catalogue, skillId);
  const pInit = before?.pInit ?? skillModelOf(model, skillId).parameters.pInit;
  skills.set(skillId, { state, placement, pInit });
}

export function practisedSkills(skills: SkillStates, model: TenantModel): Map<string, PractisedSkill> {
  const practised = new Map<string, PractisedSkill>();
  for (const [skillId, state] of skills) practise(practised, skillId, state, model);
  return practised;
}

/** Weighted mean after forgetting; null if no skill has enough attempts. */
export function meanMastery(skills: ReadonlyMap<string, PractisedSkill>, at: number): number | null {
  let [weights, sum] = [0, 0];
  for (const { state, placement, pInit } of skills.values()) {
    if (state.attempts < momentumModel.minAttempts) continue;
    weights += placement.weight;
    sum += placement.weight * effectiveMastery(pInit, state, at);
  }
  return weights === 0 ? null : sum / weights;
}
