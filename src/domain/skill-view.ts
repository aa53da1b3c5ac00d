/** A learner's skills as they stand now: what forecasts, recommendations and velocity look at. */
import { type Placement, placementOf, shareOf } from './catalogue.js';
import { effectiveMastery } from './forgetting.js';
import { type SkillModel, skillModelOf, type TenantModel } from './tenant-model.js';
import type { PerSection, Section, SkillState } from './types.js';

/** One skill of one learner, with what is in force for it. */
export interface SkillView {
  readonly skillId: string;
  readonly state: SkillState;
  readonly model: SkillModel;
  readonly placement: Placement;
  /** At the time of the view, after forgetting, unrounded. */
  readonly mastery: number;
}

/**
 * @param skills each once, by id
 * @param at Unix milliseconds
 */
export function viewSkills(
  skills: Iterable<readonly [skillId: string, state: SkillState]>,
  model: TenantModel,
  at: number,
): SkillView[] {
  const views: SkillView[] = [];
  for (const [skillId, state] of skills) views.push(viewSkill(skillId, state, model, at));
  return views;
}

/** @param at Unix milliseconds */
export function viewSkill(
  skillId: string,
  state: SkillState,
  tenantModel: TenantModel,
  at: number,
): SkillView {
  const model = skillModelOf(tenantModel, skillId);
  return {
    skillId,
    state,
    model,
    placement: placementOf(tenantModel.catalogue, skillId),
    mastery: effectiveMastery(model.parameters.pInit, state, at),
  };
}

/** Skills of one section together; one without a section counts half in each. */
export interface SectionSums {
  readonly skills: number;
  readonly weight: number;
  /** Mastery times weight. */
  readonly mastery: number;
}

export function sectionSums(
  views: readonly Pick<SkillView, 'placement' | 'mastery'>[],
): PerSection<SectionSums> {
  return { math: sumsOf(views, 'math'), rw: sumsOf(views, 'rw') };
}

function sumsOf(views: readonly Pick<SkillView, 'placement' | 'mastery'>[], section: Section): SectionSums {
  let [skills, weights, masteries] = [0, 0, 0];
  for (const { placement, mastery } of views) {
    const share = shareOf(placement, section);
    const weight = share * placement.weight;
    skills += share;
    weights += weight;
    masteries += weight * mastery;
  }
  return { skills, weight: weights, mastery: masteries };
}

/** What the mean looks at. */
interface MeanPart {
  readonly state: Pick<SkillState, 'attempts'>;
  readonly placement: Pick<Placement, 'weight'>;
  readonly mastery: number;
}

/**
 * Weighted mean mastery of the skills with enough attempts: the first answers on a skill move mastery from the
 * prior to the truth, which is measurement and not learning. Null where no skill has them.
 *
 * @param minAttempts on a skill, for it to count
 */
export function meanMastery(views: readonly MeanPart[], minAttempts: number): number | null {
  let [weights, sum] = [0, 0];
  for (const { state, placement, mastery } of views) {
    if (state.attempts < minAttempts) continue;
    weights += placement.weight;
    sum += placement.weight * mastery;
  }
  return weights === 0 ? null : sum / weights;
}
