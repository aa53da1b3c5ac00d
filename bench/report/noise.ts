/** What can be told from two spreads, and what may be chance. */
import type { Spread } from '../results.js';
import { shown } from './view.js';

/** Runs of the same program differ by so much even where rounds within each agree better. */
const leastChange = 0.03;

/** Fewer rounds have no spread to speak of. */
const leastRounds = 3;

/** What is better: less, more, or neither. */
export type Better = 'less' | 'more' | 'neither';

/** Whether there is a difference beyond noise, and of which kind. */
export function verdictOf(old: Spread, now: Spread, better: Better): string {
  if (Math.min(old.rounds, now.rounds) < leastRounds) return 'too few rounds to tell';
  const apart = now.low > old.high || now.high < old.low;
  const change = Math.abs(now.median - old.median);
  if (!apart || change < leastChange * old.median) return 'no difference beyond noise';
  const direction = now.median < old.median ? 'less' : 'more';
  if (better === 'neither') return direction;
  return direction === better ? 'better' : 'worse';
}

/**
 * How often chance alone parts spreads: of all orders of the rounds of two runs, those in which all of one lie above
 * all of the other.
 *
 * @param old rounds of each value
 * @returns empty where nothing has rounds enough
 */
export function chanceText(old: readonly number[], now: readonly number[]): string {
  const fewest = (rounds: readonly number[]): number =>
    Math.min(...rounds.filter((count) => count >= leastRounds));
  const [before, after] = [fewest(old), fewest(now)];
  if (!Number.isFinite(before + after)) return '';
  const arrangements = choose(before + after, before);
  return `Spreads of ${before} and ${after} rounds part by chance alone in about one row of ${shown(arrangements / 2)}.`;
}

const choose = (n: number, k: number): number =>
  Array.from({ length: k }, (_, i) => (n - i) / (k - i)).reduce((product, factor) => product * factor, 1);
