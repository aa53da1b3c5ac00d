import { dayMs } from '../base/days.js';
import { forgettingModel } from '../base/params.js';
import { clamp } from '../base/probability.js';
import type { SkillState } from './states.js';

/**
 * Days after which half of what mastery has above its prior is gone: spaced practice decays more slowly.
 * Source: half-life regression (Settles & Meeder 2016), by the number of distinct days with a right answer.
 *
 * @param correctDays 0 or more; fractions where they are expected values
 */
export function halfLifeDays(correctDays: number): number {
  const { baseDays, doublingDays, maxDays } = forgettingModel;
  return clamp(baseDays * 2 ** ((correctDays - 1) / doublingDays), baseDays, maxDays);
}

/** What forgetting looks at. */
type Remembered = Pick<SkillState, 'correctDays' | 'lastAttemptAt' | 'attempts'>;

/**
 * Share of what mastery has above its prior that is left since the last attempt, 0 to 1; 1 within a day of grace, and
 * before the attempt.
 *
 * @param now Unix milliseconds
 */
export function retentionOf({ attempts, correctDays, lastAttemptAt }: Remembered, now: number): number {
  const idleDays = (now - lastAttemptAt) / dayMs - forgettingModel.graceDays;
  return attempts === 0 || idleDays <= 0 ? 1 : 2 ** (-idleDays / halfLifeDays(correctDays));
}

/** What is left of a mastery: it decays towards the prior; at or below the prior nothing is forgotten. */
export const faded = (mastery: number, pInit: number, retention: number): number =>
  mastery <= pInit || retention === 1 ? mastery : pInit + (mastery - pInit) * retention;

/**
 * Mastery at a time, after forgetting since the last attempt; without an attempt the prior in force.
 *
 * @param now Unix milliseconds
 */
export const effectiveMastery = (
  pInit: number,
  skill: Remembered & Pick<SkillState, 'mastery'>,
  now: number,
): number => (skill.attempts === 0 ? pInit : faded(skill.mastery, pInit, retentionOf(skill, now)));
