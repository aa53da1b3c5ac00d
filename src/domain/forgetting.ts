import { forgettingModel } from './params.js';
import { clamp } from './probability.js';
import type { SkillState } from './types.js';

/** Milliseconds of a day. */
export const dayMs = 86_400_000;

/** UTC day since 1970 of a time in Unix milliseconds. */
export const dayOf = (ms: number): number => Math.floor(ms / dayMs);

/**
 * Days after which half of what mastery has above its prior is gone: spaced practice decays more slowly.
 * Source: half-life regression (Settles & Meeder 2016), by the number of distinct days with a right answer.
 *
 * @param correctDays 0 or more
 */
export function halfLifeDays(correctDays: number): number {
  const { baseDays, doublingDays, maxDays } = forgettingModel;
  return clamp(baseDays * 2 ** ((correctDays - 1) / doublingDays), baseDays, maxDays);
}

/**
 * Mastery at a time, after forgetting since the last attempt. It decays towards the prior and never below it;
 * mastery at or below the prior stays, and so does any within the grace of a day, bit for bit. A time before the
 * last attempt counts as no time. Without an attempt it is the prior in force.
 *
 * @param pInit prior mastery of the skill
 * @param now Unix milliseconds
 */
export function effectiveMastery(
  pInit: number,
  skill: Pick<SkillState, 'mastery' | 'correctDays' | 'lastAttemptAt' | 'attempts'>,
  now: number,
): number {
  const { mastery, attempts, correctDays } = skill;
  if (attempts === 0) return pInit;
  const idleDays = (now - skill.lastAttemptAt) / dayMs - forgettingModel.graceDays;
  if (mastery <= pInit || idleDays <= 0) return mastery;
  return pInit + (mastery - pInit) * 2 ** (-idleDays / halfLifeDays(correctDays));
}
