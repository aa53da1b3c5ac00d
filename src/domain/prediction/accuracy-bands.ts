/** Learners by how many answers they have so far. */
import { accuracyConstants as constants } from '../base/params.js';

export interface HistoryBand {
  /** The least history inside. */
  readonly from: number;
  /** Where the next band begins; infinite for the last one. */
  readonly to: number;
  /** Middle in ratio, where figures of the band stand; the last one counts as if it ended at twice its beginning. */
  readonly middle: number;
}

/** Ascending and without gaps. */
export const historyBands: readonly HistoryBand[] = constants.bands.map((from, band) => {
  const next = constants.bands[band + 1];
  return { from, to: next ?? Number.POSITIVE_INFINITY, middle: Math.sqrt(from * (next ?? 2 * from)) };
});

export const isInBand = ({ from, to }: HistoryBand, history: number): boolean =>
  history >= from && history < to;
