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
 * @param correctDays whole, 0 or more
 */
export const halfLifeDays = (correctDays: number): number =>
  halfLives[Math.min(correctDays, halfLives.length - 1)] as number;

/** By the number of days, up to the longest: forecasts ask for many at a time. */
const halfLives = halfLifeTable();

function halfLifeTable(): number[] {
  const { baseDays, doublingDays, maxDays } = forgettingModel;
  const table: number[] = [];
  for (let days = 0; table.at(-1) !== maxDays; days++) {
    table.push(clamp(baseDays * 2 ** ((days - 1) / doublingDays), baseDays, maxDays));
  }
  return table;
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
