/**
 * Rolling mastery forward: what practice at a rate adds to each skill, and what forgetting takes. A learner's own
 * past slope foretells next to nothing, in simulation its correlation with the next month's gain was .02; the rate
 * of practice, the probability of learning and the room that is left do better (science notes 6.3).
 */
import { dayMs, halfLifeDays } from './forgetting.js';
import { forgettingModel, projectionModel, scoreModel } from './params.js';
import { masteryLogit } from './score.js';

/** One skill at the start of the projection. */
export interface ProjectedSkill {
  /** Effective mastery now. */
  readonly mastery: number;
  /** In the section's mean. */
  readonly weight: number;
  /** What mastery decays to. */
  readonly pInit: number;
  readonly pLearn: number;
  readonly onPlateau: boolean;
  /** Days since the last attempt, 0 or more. */
  readonly idleDays: number;
  /** Distinct days with a right answer. */
  readonly correctDays: number;
  /** Answers per day from now on. */
  readonly rate: number;
  /** Share of the mastery that practice keeps from fading, 0 to 1. */
  readonly freshness: number;
}

/**
 * How a section's ability goes on: its expected change on the population's scale. For a single day, `from` the same as
 * `to`, it is that day's; no change from one day to another is above that of the range. Days are 0 to 365.
 */
export type Outlook = (from: number, to: number) => number;

/** Of a section without a skill to look at. */
const noOutlook: Outlook = () => 0;

/** Figures of a skill in a row of the table, which is the inner loop of forecasts. */
const prior = 0;
/** Mastery above the prior: what fades, and what practice keeps. */
const fading = 1;
const kept = 2;
/** Logarithm of what is left of the fading part after one day. */
const fade = 3;
/** Days of grace that are left. */
const grace = 4;
/** Logarithm of what is left to learn after one day. */
const learn = 5;
/** In the mean; all together are 1. */
const weight = 6;
const width = 7;

/** @param project null: the skill does not belong to the section */
export function outlookOf<Skill>(
  skills: readonly Skill[],
  project: (skill: Skill) => ProjectedSkill | null,
): Outlook {
  const table = tableOf(skills, project);
  if (table.length === 0) return noOutlook;
  const start = masteryLogit(meanMastery(table, 0, 0));
  return (from, to) =>
    Math.min(
      projectionModel.maxChange,
      scoreModel.masteryLink * (masteryLogit(meanMastery(table, from, to)) - start),
    );
}

/**
 * Each skill goes into its row at once: a list of them would cost more than what is computed from it. The table is a
 * list of numbers, for the memory of a typed array of this size is taken from, and given back to, the system each time.
 */
function tableOf<Skill>(
  skills: readonly Skill[],
  project: (skill: Skill) => ProjectedSkill | null,
): number[] {
  const table: number[] = [];
  let weights = 0;
  for (const skill of skills) {
    const projected = project(skill);
    if (projected === null) continue;
    addRow(table, projected);
    weights += projected.weight;
  }
  for (let at = weight; at < table.length; at += width) table[at] = (table[at] as number) / weights;
  return table;
}

/** In the order of the figures above. */
function addRow(table: number[], skill: ProjectedSkill): void {
  const { mastery, pInit, freshness } = skill;
  const above = Math.max(0, mastery - pInit);
  table.push(
    Math.min(mastery, pInit),
    (1 - freshness) * above,
    freshness * above,
    -Math.LN2 / halfLifeDays(skill.correctDays),
    Math.max(0, forgettingModel.graceDays - skill.idleDays),
    skill.rate * Math.log1p(-learningOf(skill.pLearn, skill.onPlateau)),
    skill.weight,
  );
}

/** Probability that an answer brings learning which a test would show. */
export function learningOf(pLearn: number, onPlateau: boolean): number {
  const { learningShare, plateauShare } = projectionModel;
  return learningShare * pLearn * (onPlateau ? plateauShare : 1);
}

/**
 * With the forgetting of one day and the practice of another: both the same day's is what is expected then. Skills
 * that are practised alike follow one another with the same exponents, so a power is kept until it is another.
 */
function meanMastery(table: readonly number[], from: number, to: number): number {
  const figure = (place: number): number => table[place] as number;
  let mean = 0;
  let [faded, left] = [0, 1];
  let [learned, unlearned] = [0, 1];
  for (let at = 0; at < table.length; at += width) {
    const fadedNow = figure(at + fade) * Math.max(0, from - figure(at + grace));
    if (fadedNow !== faded) {
      faded = fadedNow;
      left = Math.exp(faded);
    }
    const learnedNow = figure(at + learn) * to;
    if (learnedNow !== learned) {
      learned = learnedNow;
      unlearned = Math.exp(learned);
    }
    const mastery = figure(at + prior) + figure(at + kept) + figure(at + fading) * left;
    mean += figure(at + weight) * (1 - (1 - mastery) * unlearned);
  }
  return mean;
}

/** Days from one time to a later one, both Unix milliseconds; 0 where it is not later. */
export const daysBetween = (from: number, to: number): number => Math.max(0, (to - from) / dayMs);
