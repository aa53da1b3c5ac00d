import {
  type AnswerLog,
  copyRanges,
  iterateLearnerRanges,
  selectAllLearners,
} from '../../domain/base/answer-log.js';
import { detectHorizonUnit, minPastMs } from '../../domain/fit/accuracy/accuracy-cases.js';
import { indices } from '../../lists.js';
import type { Split } from '../evaluate/answers.js';

/** Unix milliseconds, `to` excluded. Without times, or if the log is too short, one window covers all. */
export interface ForecastWindow {
  readonly from: number;
  readonly to: number;
}

export const unboundedWindow: ForecastWindow = {
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
};

/** Equal numbers of answers. The first part is for training only. */
const logParts = 4;

export function planWindows({ training, test }: Split): readonly ForecastWindow[] {
  if (detectHorizonUnit(training) === 'answers') return [unboundedWindow];
  // Learners without times have 0.
  const times = Float64Array.from([...training.at, ...test.at].filter((time) => time > 0)).sort();
  const cutoffs = indices(logParts - 1).map(
    (i) => times[Math.floor(((i + 1) * times.length) / logParts)] as number,
  );
  const [begin = 0, first = 0] = [times[0], cutoffs[0]];
  if (first - begin < minPastMs) return [unboundedWindow];
  return cutoffs
    .map((from, i) => ({ from, to: cutoffs[i + 1] ?? unboundedWindow.to }))
    .filter(({ from, to }) => from < to);
}

/** Omits learners without earlier answers. */
export function selectAnswersBefore(log: AnswerLog, { from }: ForecastWindow): AnswerLog {
  if (from === unboundedWindow.from) return log;
  const ranges = [...iterateLearnerRanges(log, selectAllLearners(log))]
    .map(({ start, end }) => {
      const later = log.at.subarray(start, end).findIndex((time) => time >= from);
      return { start, end: later < 0 ? end : start + later };
    })
    .filter(({ start, end }) => end > start);
  return copyRanges(log, ranges);
}
