import { dayMs } from '../../base/days.js';
import { fitModel, forgettingModel } from '../../base/params.js';
import { halfLifeDays } from '../../tracing/forgetting.js';

/**
 * What a pause leaves of the mastery above pInit, by the rule that serves (see `effectiveMastery`), for pauses
 * long enough to split a sequence; 1 for the others, over which fits take nothing to be forgotten.
 */
export function keptAfterPause(idleMs: number, correctDays: number): number {
  const days = idleMs / dayMs;
  return days > fitModel.splitDays
    ? 2 ** ((forgettingModel.graceDays - days) / halfLifeDays(correctDays))
    : 1;
}
