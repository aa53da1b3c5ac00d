/**
 * Mastery rolled forward: what practice at a rate adds to a skill, and what forgetting takes. The learner's past slope
 * predicts next to nothing (in simulation its correlation with the next month's gain was .02); the rate of practice, the
 * probability of learning and the room that is left do better (science notes 6.3).
 *
 * Practice and forgetting go on side by side, du/dt = learn (1 - u) - forget (u - kept), the latter above `kept` alone:
 * each skill moves towards the one mastery at which both balance, and never turns back on its way.
 */

import { dayMs } from '../base/days.js';
import { forgettingModel, projectionModel } from '../base/params.js';
import { halfLifeDays } from '../tracing/forgetting.js';
import { abilityOf } from './section-measure.js';

/** One skill, or what is like one, at the start of the projection. */
export interface ProjectedSkill {
  /** Effective mastery now. */
  readonly mastery: number;
  /** In the section's mean. */
  readonly weight: number;
  /** What forgetting leaves of it in the end (`keptMastery`). */
  readonly kept: number;
  /** Share that practice takes of what is left to learn, as a rate per day (`learningRate`). */
  readonly learn: number;
  /** Share that forgetting takes of mastery above `kept`, as a rate per day (`forgettingRate`). */
  readonly forget: number;
  /** Days until forgetting begins, 0 or more. */
  readonly grace: number;
}

/**
 * Probability that an answer brings learning which a test would show.
 *
 * @param slowed on a plateau, or by answers too fast to learn from
 */
export const learningOf = (pLearn: number, slowed: boolean): number =>
  projectionModel.learningShare * pLearn * (slowed ? projectionModel.slowedShare : 1);

/** @param learning at an answer, as `learningOf` returns it */
export const learningRate = (answersPerDay: number, learning: number): number =>
  -answersPerDay * Math.log1p(-learning);

/**
 * The prior, and of the mastery above it the share that practice keeps.
 *
 * @param freshness that share, 0 to 1
 */
export const keptMastery = (mastery: number, pInit: number, freshness: number): number =>
  pInit + freshness * Math.max(0, mastery - pInit);

/** @param correctDays days with a right answer, 0 or more */
export const forgettingRate = (correctDays: number, freshness: number): number =>
  ((1 - freshness) * Math.LN2) / halfLifeDays(correctDays);

/** Days of grace that are left. */
export const graceLeft = (idleMs: number): number =>
  Math.max(0, forgettingModel.graceDays - Math.max(0, idleMs) / dayMs);

/**
 * Expected change of a section's ability, on the population's scale, once falling skills have gone on for some days and
 * rising ones for some, 0 to 365 each. Both the same is the change until that day. Every skill goes one way, so the
 * earliest day for falling ones and the latest for rising ones bound all days between.
 */
type Outlook = (fallingDays: number, risingDays: number) => number;

/** Figures of a skill in a row of the table, which is the inner loop of forecasts. */
const start = 0;
/** Where it goes, and how fast: minus the rate per day. */
const end = 1;
const speed = 2;
/** Day from which on it goes there, and mastery on that day; until then it learns without forgetting, at minus this rate. */
const from = 3;
const turn = 4;
const learn = 5;
/** In the mean; all together are 1. */
const weight = 6;
const width = 7;

/**
 * The table is a list of numbers: the memory of a typed array of this size is taken from the system, and given back to
 * it, each time.
 *
 * @param skills of a section, at least one
 */
export function outlookOf(skills: Iterable<ProjectedSkill>): Outlook {
  const table: number[] = [];
  let weights = 0;
  for (const skill of skills) {
    addRow(table, skill);
    weights += skill.weight;
  }
  for (let at = weight; at < table.length; at += width) table[at] = (table[at] as number) / weights;
  const now = abilityOf(meanMastery(table, 0, 0));
  return (fallingDays, risingDays) =>
    Math.min(projectionModel.maxChange, abilityOf(meanMastery(table, fallingDays, risingDays)) - now);
}

/** Mastery below its prior has nothing to forget until it is there; falling mastery waits for the end of its grace. */
function addRow(table: number[], { mastery, weight, kept, learn, forget, grace }: ProjectedSkill): void {
  const rate = forget + learn;
  const balance = rate === 0 ? mastery : (forget * kept + learn) / rate;
  if (forget > 0 && mastery < kept) {
    const reached = learn === 0 ? Number.POSITIVE_INFINITY : Math.log((1 - mastery) / (1 - kept)) / learn;
    table.push(mastery, balance, -rate, reached, kept, -learn, weight);
  } else table.push(mastery, balance, -rate, balance < mastery ? grace : 0, mastery, 0, weight);
}

/** Skills that are practised alike follow one another with the same exponent: its power is kept until it changes. */
function meanMastery(table: readonly number[], fallingDays: number, risingDays: number): number {
  const figure = (place: number): number => table[place] as number;
  let mean = 0;
  let [exponent, power] = [0, 1];
  for (let at = 0; at < table.length; at += width) {
    const days = figure(at + end) < figure(at + start) ? fallingDays : risingDays;
    const isBefore = days < figure(at + from);
    const now = isBefore ? figure(at + learn) * days : figure(at + speed) * (days - figure(at + from));
    if (now !== exponent) {
      exponent = now;
      power = Math.exp(now);
    }
    const goal = isBefore ? 1 : figure(at + end);
    mean += figure(at + weight) * (goal - (goal - figure(at + (isBefore ? start : turn))) * power);
  }
  return mean;
}
