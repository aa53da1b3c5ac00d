/** What a tenant says of its skills: names, sections, weights, and parameters set by hand. */
import { type BktParameters, scoreModel } from '../base/params.js';
import { type PerSection, perSection, type Section, sections } from '../base/types.js';

/** One skill as it was set. */
export interface SkillEntry {
  /** For people; null: they see the id. */
  readonly name: string | null;
  /** Null: counts half in each. */
  readonly section: Section | null;
  /** Of the skill within its section, above 0. */
  readonly weight: number;
  /** Set by hand, which fits do not change; null: fitted ones, or the defaults. */
  readonly parameters: BktParameters | null;
  /** Number of the change of the tenant's catalogue that brought the entry, from 1. */
  readonly revision: number;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

/** Where a skill belongs, and how much it weighs there. */
export type Placement = Pick<SkillEntry, 'section' | 'weight'>;

/** Of a skill that was never set. */
export const unplaced: Placement = { section: null, weight: 1 };

/** Skills of one section: how many, and their weights together; one without a section counts half in each. */
export interface SectionTotals {
  readonly skills: number;
  readonly weight: number;
}

/** Of what was set. */
interface SetTotals extends SectionTotals {
  /** Skills that were given to this very section. */
  readonly placed: number;
}

/** All the skills that a tenant has set. */
export interface Catalogue {
  /** Number of the last change; 0 before the first. */
  readonly revision: number;
  readonly entries: ReadonlyMap<string, SkillEntry>;
  readonly totals: PerSection<SetTotals>;
}

export function catalogueOf(revision: number, entries: ReadonlyMap<string, SkillEntry>): Catalogue {
  const totals = perSection((section): SetTotals => {
    const totals = { skills: 0, weight: 0, placed: 0 };
    for (const entry of entries.values()) {
      const share = shareOf(entry, section);
      totals.placed += share === 1 ? 1 : 0;
      totals.skills += share;
      totals.weight += share * entry.weight;
    }
    return totals;
  });
  return { revision, entries, totals };
}

export const emptyCatalogue: Catalogue = catalogueOf(0, new Map());

export const placementOf = ({ entries }: Catalogue, skillId: string): Placement =>
  entries.get(skillId) ?? unplaced;

/** How much of an answer on the skill belongs to the section: all, half or nothing. */
export function shareOf({ section }: Pick<Placement, 'section'>, of: Section): number {
  if (section === null) return 1 / sections.length;
  return section === of ? 1 : 0;
}

/**
 * All the skills that the tenant knows. Those that were never set count half in each section. A catalogue that places
 * a skill in a section is taken as complete there; without one a section weighs as much as `leastSkills` skills at least.
 *
 * @param known number of different skills, set or answered by enough learners
 */
export function knownTotals({ entries, totals }: Catalogue, known: number, section: Section): SectionTotals {
  const others = Math.max(0, known - entries.size) * shareOf(unplaced, section);
  const { skills, weight, placed } = totals[section];
  const least = placed === 0 ? scoreModel.leastSkills : 0;
  return {
    skills: skills + others,
    weight: Math.max(weight + others * unplaced.weight, least),
  };
}
