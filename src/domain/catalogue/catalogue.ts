import {
  type BktParameters,
  guessSlipMargin,
  masteryThresholds,
  maxPStarShare,
} from '../base/bkt-parameters.js';
import { utc } from '../base/calendar.js';
import { mapSections, type NonEmpty, type PerSection, type Section, sections } from '../base/common.js';
import { scoreConstants } from '../base/score-constants.js';
import { computeMaxForget, pStar } from '../tracing/bkt.js';

export interface SkillEntry {
  readonly name: string | null;
  /** Null: half in each section. */
  readonly section: Section | null;
  /** Positive. */
  readonly weight: number;
  /** Never changed by fits; null if not set manually. */
  readonly parameters: BktParameters | null;
  readonly revision: number;
  readonly updatedAt: number;
}

export type Placement = Pick<SkillEntry, 'section' | 'weight'>;

const defaultPlacement: Placement = { section: null, weight: 1 };

export interface SectionTotals {
  readonly skills: number;
  readonly weight: number;
}

/** Settings of a tenant. */
export interface Catalogue {
  readonly revision: number;
  /** Of new learners. IANA name. */
  readonly timeZone: string;
  readonly entries: ReadonlyMap<string, SkillEntry>;
  readonly totals: PerSection<SectionTotals & { readonly placed: number }>;
}

export function buildCatalogue(
  revision: number,
  entries: ReadonlyMap<string, SkillEntry>,
  timeZone = utc,
): Catalogue {
  const totals = mapSections((section) => {
    const totals = { skills: 0, weight: 0, placed: 0 };
    for (const entry of entries.values()) {
      const share = computeSectionShare(entry, section);
      totals.placed += share === 1 ? 1 : 0;
      totals.skills += share;
      totals.weight += share * entry.weight;
    }
    return totals;
  });
  return { revision, timeZone, entries, totals };
}

export const emptyCatalogue: Catalogue = buildCatalogue(0, new Map());

export const findPlacement = ({ entries }: Catalogue, skillId: string): Placement =>
  entries.get(skillId) ?? defaultPlacement;

/** A question of several sections counts half in each, like a skill without a section. */
export function findQuestionPlacement(catalogue: Catalogue, skillIds: NonEmpty<string>): Placement {
  const first = findPlacement(catalogue, skillIds[0]);
  const isShared = skillIds.every((skillId) => findPlacement(catalogue, skillId).section === first.section);
  return isShared ? first : { ...first, section: null };
}

/** Share of the skill's answers that belongs to the section: 1, 0.5 or 0. */
export function computeSectionShare({ section }: Pick<Placement, 'section'>, target: Section): number {
  if (section === null) return 1 / sections.length;
  return section === target ? 1 : 0;
}

/** A section without assigned skills has at least `leastSkills` skills, of at least this weight. */
export function computeSectionTotals(
  { entries, totals }: Catalogue,
  registeredSkills: number,
  section: Section,
): SectionTotals {
  const others =
    Math.max(0, registeredSkills - entries.size) * computeSectionShare(defaultPlacement, section);
  const { skills, weight, placed } = totals[section];
  const least = placed === 0 ? scoreConstants.leastSkills : 0;
  return {
    skills: Math.max(skills + others, least),
    weight: Math.max(weight + others * defaultPlacement.weight, least),
  };
}

export type SkillSetting = Pick<SkillEntry, 'name' | 'section' | 'weight' | 'parameters'>;

export const defaultSkillSetting: SkillSetting = { name: null, ...defaultPlacement, parameters: null };

const tolerance = 1e-9;

/** Correct answers must lead to mastery, and a wrong first answer must lower it. @returns null if valid */
export function findParameterProblem(
  parameters: BktParameters,
): { readonly parameter: keyof BktParameters; readonly message: string } | null {
  const { pInit, pGuess, pSlip, pForget } = parameters;
  const most = 1 - guessSlipMargin;
  if (pGuess + pSlip > most + tolerance) {
    return {
      parameter: 'pSlip',
      message: `must be at most ${floorToDecimals(most - pGuess)} (${most} - p_guess)`,
    };
  }
  const limit = maxPStarShare * pInit;
  if (pStar(parameters) >= limit) {
    const below = (limit * (1 - pSlip - pGuess)) / (1 - pGuess);
    const formula = `${maxPStarShare} * p_init * (1 - p_slip - p_guess) / (1 - p_guess)`;
    return { parameter: 'pLearn', message: `must be below ${floorToDecimals(below)} (${formula})` };
  }
  const forget = computeMaxForget(parameters, masteryThresholds.mastery);
  if (pForget <= forget) return null;
  const reason = `with a higher value, correct answers cannot raise mastery to ${masteryThresholds.mastery}`;
  return { parameter: 'pForget', message: `must be at most ${floorToDecimals(forget)}: ${reason}` };
}

const floorToDecimals = (value: number): number => Math.max(0, Math.floor(value * 1e4 + tolerance)) / 1e4;
