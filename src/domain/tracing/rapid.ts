import { rapidModel } from '../base/params.js';
import { clamp } from '../base/probability.js';
import type { SkillTimes } from './pace.js';

/** Rapid answers of one learner on one skill. */
export const newRapid = {
  /** All rapid answers so far. */
  answers: 0,
  /** The last timed answers, the newest in the lowest bit: 1 for a rapid one. */
  recent: 0,
  /** How many of the bits stand for an answer, 0 to `rapidModel.window`. */
  recentTimed: 0,
};

export type RapidState = Readonly<typeof newRapid>;

const windowMask = 2 ** rapidModel.window - 1;

/**
 * Seconds below which an answer on the skill counts as rapid guessing: a tenth of the mean time, at most 10 s
 * (Wise & Ma 2012), and 3 s while few times are known (Kong, Wise & Bhola 2007).
 */
export function rapidThreshold(times: Pick<SkillTimes, 'answers' | 'meanSeconds'> | null): number {
  const { minAnswers, defaultSeconds, shareOfMean, minSeconds, maxSeconds } = rapidModel;
  if (times === null || times.answers < minAnswers) return defaultSeconds;
  return clamp(shareOfMean * times.meanSeconds, minSeconds, maxSeconds);
}

/** Whether an answer was too fast to be a solution; one without a time was not. */
export const isRapid = (seconds: number | null, threshold: number): boolean =>
  seconds !== null && seconds < threshold;

/** Counts an answer. One without a time, or so long a time that the learner had left, is not timed; 0 s is rapid. */
export function updateRapid(state: RapidState, seconds: number | null, threshold: number): RapidState {
  if (seconds === null || seconds > rapidModel.awaySeconds) return state;
  const bit = isRapid(seconds, threshold) ? 1 : 0;
  return {
    answers: state.answers + bit,
    recent: ((state.recent << 1) | bit) & windowMask,
    recentTimed: Math.min(state.recentTimed + 1, rapidModel.window),
  };
}

/** Whether many recent timed answers were rapid. Below ten there is no flag: everybody gives one or two now and then. */
export const rapidFlag = ({ recent, recentTimed }: RapidState): boolean =>
  recentTimed >= rapidModel.minTimed && countBits(recent) >= rapidModel.flagShare * recentTimed;

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++; // each step clears the lowest 1
  return count;
}
