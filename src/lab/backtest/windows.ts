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
export interface Window {
  readonly from: number;
  readonly to: number;
}

export const always: Window = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** Equal numbers of answers. The first part is for training only. */
const stretches = 4;

export function windowsOf({ training, test }: Split): readonly Window[] {
  if (detectHorizonUnit(training) === 'answers') return [always];
  // Learners without times have 0.
  const times = Float64Array.from([...training.at, ...test.at].filter((time) => time > 0)).sort();
  const cutoffs = indices(stretches - 1).map(
    (i) => times[Math.floor(((i + 1) * times.length) / stretches)] as number,
  );
  const [begin = 0, first = 0] = [times[0], cutoffs[0]];
  if (first - begin < minPastMs) return [always];
  return cutoffs
    .map((from, i) => ({ from, to: cutoffs[i + 1] ?? always.to }))
    .filter(({ from, to }) => from < to);
}

/** Omits learners without earlier answers. */
export function answersBefore(log: AnswerLog, { from }: Window): AnswerLog {
  if (from === always.from) return log;
  const kept = [...iterateLearnerRanges(log, selectAllLearners(log))]
    .map(({ start, end }) => {
      const later = log.at.subarray(start, end).findIndex((time) => time >= from);
      return { start, end: later < 0 ? end : start + later };
    })
    .filter(({ start, end }) => end > start);
  return copyRanges(log, kept);
}
