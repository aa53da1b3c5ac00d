import { rapidModel } from '../base/params.js';
import { clamp } from '../base/probability.js';
import type { SkillTimes } from './pace.js';

/** Rapid answers of one learner on one skill. */
export interface RapidState {
  /** All rapid answers so far. */
  readonly answers: number;
  /** The last timed answers, the newest in the lowest bit: 1 for a rapid one. */
  readonly recent: number;
  /** How many of the bits stand for an answer, 0 to `rapidModel.window`. */
  readonly recentTimed: number;
}

export const newRapid: RapidState = { answers: 0, recent: 0, recentTimed: 0 };

const windowMask = 2 ** rapidModel.window - 1;

/**
 * Seconds below which an answer on the skill is taken for rapid guessing: a tenth of the mean time, at most 10 s
 * (Wise & Ma 2012), and 3 s for all while few times are known (Kong, Wise & Bhola 2007).
 */
export function rapidThreshold(times: Pick<SkillTimes, 'answers' | 'meanSeconds'> | null): number {
  const { minAnswers, defaultSeconds, shareOfMean, minSeconds, maxSeconds } = rapidModel;
  if (times === null || times.answers < minAnswers) return defaultSeconds;
  return clamp(shareOfMean * times.meanSeconds, minSeconds, maxSeconds);
}

/** Whether an answer was too fast to be a solution; one without a time was not. */
export const isRapid = (seconds: number | null, threshold: number): boolean =>
  seconds !== null && seconds < threshold;

/**
 * Counts an answer. One without a time, or with a time that says that the learner was away, counts as not timed;
 * 0 seconds counts as rapid.
 */
export function updateRapid(state: RapidState, seconds: number | null, threshold: number): RapidState {
  if (seconds === null || seconds > rapidModel.awaySeconds) return state;
  const bit = isRapid(seconds, threshold) ? 1 : 0;
  return {
    answers: state.answers + bit,
    recent: ((state.recent << 1) | bit) & windowMask,
    recentTimed: Math.min(state.recentTimed + 1, rapidModel.window),
  };
}

/**
 * Whether many of the recent timed answers were rapid. Below ten timed ones there is no flag: a share of 30 % would
 * be one or two answers, which anybody gives now and then.
 */
export function rapidFlag({ recent, recentTimed }: RapidState): boolean {
  return recentTimed >= rapidModel.minTimed && countBits(recent) >= rapidModel.flagShare * recentTimed;
}

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++; // each step clears the lowest 1
  return count;
}
