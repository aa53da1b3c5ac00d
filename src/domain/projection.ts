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

/** How the mean mastery of a section's skills goes on. */
export interface Outlook {
  /**
   * Expected change of the section's ability, on the population's scale, in so many days.
   *
   * @param days 0 to 365
   */
  change(days: number): number;
  /** No change from one day to another is above this; for a single day it is that day's. */
  bestChange(from: number, to: number): number;
}

/** Of a section without a skill to look at. */
const noOutlook: Outlook = { change: () => 0, bestChange: () => 0 };

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

export function outlookOf(skills: readonly ProjectedSkill[]): Outlook {
  if (skills.length === 0) return noOutlook;
  const table = tableOf(skills);
  const start = masteryLogit(meanMastery(table, 0, 0));
  const bestChange = (from: number, to: number): number =>
    Math.min(
      projectionModel.maxChange,
      scoreModel.masteryLink * (masteryLogit(meanMastery(table, from, to)) - start),
    );
  return { change: (days) => bestChange(days, days), bestChange };
}

function tableOf(skills: readonly ProjectedSkill[]): Float64Array {
  const table = new Float64Array(width * skills.length);
  const weights = skills.reduce((sum, skill) => sum + skill.weight, 0);
  skills.forEach((skill, i) => {
    writeRow(table, width * i, skill);
    table[width * i + weight] = skill.weight / weights;
  });
  return table;
}

function writeRow(table: Float64Array, at: number, skill: ProjectedSkill): void {
  const { mastery, pInit, freshness } = skill;
  const above = Math.max(0, mastery - pInit);
  table[at + prior] = Math.min(mastery, pInit);
  table[at + fading] = (1 - freshness) * above;
  table[at + kept] = freshness * above;
  table[at + fade] = -Math.LN2 / halfLifeDays(skill.correctDays);
  table[at + grace] = Math.max(0, forgettingModel.graceDays - skill.idleDays);
  table[at + learn] = skill.rate * Math.log1p(-learningOf(skill.pLearn, skill.onPlateau));
}

/** Probability that an answer brings learning which a test would show. */
export function learningOf(pLearn: number, onPlateau: boolean): number {
  const { learningShare, plateauShare } = projectionModel;
  return learningShare * pLearn * (onPlateau ? plateauShare : 1);
}

/** With the forgetting of one day and the practice of another: both the same day's is what is expected then. */
function meanMastery(table: Float64Array, from: number, to: number): number {
  const figure = (place: number): number => table[place] as number;
  let mean = 0;
  for (let at = 0; at < table.length; at += width) {
    const idle = Math.max(0, from - figure(at + grace));
    const left = figure(at + fading) * Math.exp(figure(at + fade) * idle);
    const mastery = figure(at + prior) + figure(at + kept) + left;
    mean += figure(at + weight) * (1 - (1 - mastery) * Math.exp(figure(at + learn) * to));
  }
  return mean;
}

/** Days from one time to a later one, both Unix milliseconds; 0 where it is not later. */
export const daysBetween = (from: number, to: number): number => Math.max(0, (to - from) / dayMs);
