/** Skills that a tenant has set and a learner has not answered. */

import type { Section } from '../base/types.js';
import type { Placement } from '../catalogue/catalogue.js';
import { type SkillModel, skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { trustOf } from '../score/section-measure.js';
import { firstHour } from './gain.js';

export interface UnseenSkill {
  readonly skillId: string;
  readonly placement: Placement;
  readonly model: SkillModel;
}

interface Ranked extends UnseenSkill {
  /** In proportion to the gain of a first hour. */
  readonly value: number;
}

/** The catalogue's skills by section, the most valuable first. */
type Ranking = ReadonlyMap<Section | null, readonly Ranked[]>;

/** A catalogue may be large, so each is ranked once; a change of either makes another model. */
const rankings = new WeakMap<TenantModel, Ranking>();

/**
 * The most valuable skill of the section that the learner never answered; null where all were.
 *
 * @param section null: of the skills that were set without one
 * @param isSeen whether the learner has answered the skill
 */
export function bestUnseen(
  model: TenantModel,
  section: Section | null,
  isSeen: (skillId: string) => boolean,
): UnseenSkill | null {
  return (
    rankingOf(model)
      .get(section)
      ?.find(({ skillId }) => !isSeen(skillId)) ?? null
  );
}

function rankingOf(model: TenantModel): Ranking {
  const known = rankings.get(model);
  if (known !== undefined) return known;
  const ranking = rank(model);
  rankings.set(model, ranking);
  return ranking;
}

function rank(model: TenantModel): Ranking {
  const ranking = new Map<Section | null, Ranked[]>([
    ['math', []],
    ['rw', []],
    [null, []],
  ]);
  for (const [skillId, entry] of model.catalogue.entries) {
    const skill = skillModelOf(model, skillId);
    const value = entry.weight * trustOf({ model: skill }) * firstHour(skill.parameters);
    ranking.get(entry.section)?.push({ skillId, placement: entry, model: skill, value });
  }
  for (const skills of ranking.values()) {
    skills.sort((a, b) => b.value - a.value || compareIds(a.skillId, b.skillId));
  }
  return ranking;
}

/** Order of ids that is the same everywhere. */
export const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
