import type { AnswerLog } from '../base/answer-log.js';
import { clamp } from '../base/common.js';
import { normalCdf } from '../base/normal.js';
import { paceModel, rapidModel } from '../base/params.js';

/** Solution times of one skill, rapid answers left out; all zero where none was measured. */
export const noTimes = {
  answers: 0,
  meanSeconds: 0,
  /** Mean of ln seconds, and the sum of squared deviations from it. */
  logMean: 0,
  logM2: 0,
};

export type SkillTimes = Readonly<typeof noTimes>;

/** The skill's log-normal time norm (van der Linden 2006), drawn to a general prior while few times are known. */
export function timeNorm(times: Pick<SkillTimes, 'answers' | 'logMean' | 'logM2'> | null) {
  const { prior, minVariance } = paceModel;
  const { answers, logMean, logM2 } = times ?? noTimes;
  const total = prior.answers + answers;
  const between = ((prior.answers * answers) / total) * (logMean - prior.logMean) ** 2;
  const variance = (prior.answers * prior.logSd ** 2 + logM2 + between) / total;
  return {
    logMean: (prior.answers * prior.logMean + answers * logMean) / total,
    logSd: Math.sqrt(Math.max(variance, minVariance)),
  };
}

export type TimeNorm = Readonly<ReturnType<typeof timeNorm>>;

/** Pace of one learner on one skill, over answers that were timed and not rapid. */
export const newPace = {
  timed: 0,
  timedCorrect: 0,
  seconds: 0,
  /** Running mean of (accuracy - time) / sqrt 2, both standardised; 0 is as expected for the skill. */
  efficiency: 0,
};

export type PaceState = Readonly<typeof newPace>;

/** Counts an answer that has a time, is not rapid, and not so long that the learner had left. */
export function updatePace(
  state: PaceState,
  isCorrect: boolean,
  pCorrect: number,
  seconds: number | null,
  norm: TimeNorm,
  rapid: boolean,
): PaceState {
  if (rapid || seconds === null || seconds === 0 || seconds > rapidModel.awaySeconds) return state;
  const timed = state.timed + 1;
  const step = Math.max(1 / timed, paceModel.minStep);
  return {
    timed,
    timedCorrect: state.timedCorrect + (isCorrect ? 1 : 0),
    seconds: state.seconds + seconds,
    efficiency:
      state.efficiency + step * (relativeEfficiency(isCorrect, pCorrect, seconds, norm) - state.efficiency),
  };
}

/** Balanced integration score (Liesefeld & Janczyk 2019) as relative efficiency (Paas & van Merrienboer 1993). */
function relativeEfficiency(isCorrect: boolean, pCorrect: number, seconds: number, norm: TimeNorm): number {
  const { maxScore, minAnswerVariance } = paceModel;
  const spread = Math.sqrt(Math.max(pCorrect * (1 - pCorrect), minAnswerVariance));
  const accuracy = clamp(((isCorrect ? 1 : 0) - pCorrect) / spread, -maxScore, maxScore);
  const time = clamp((Math.log(Math.max(seconds, 1)) - norm.logMean) / norm.logSd, -maxScore, maxScore);
  return (accuracy - time) * Math.SQRT1_2;
}

/** 0 to 100, 50 as expected of this learner; null before the third timed answer, and while none of them is right. */
export const efficiencyIndex = ({ timed, timedCorrect, efficiency }: PaceState): number | null =>
  timed < paceModel.minTimed || timedCorrect === 0 ? null : 100 * normalCdf(efficiency);

/** Right answers per minute of timed work (rate-correct score; Woltz & Was 2006); null without a time. */
export const correctPerMinute = ({ timed, timedCorrect, seconds }: PaceState): number | null =>
  timed === 0 ? null : (60 * timedCorrect) / seconds;

export const newRapid = {
  answers: 0,
  /** The last timed answers, the newest in the lowest bit: 1 for a rapid one. */
  recent: 0,
  /** How many of the bits stand for an answer, 0 to `rapidModel.window`. */
  recentTimed: 0,
};

export type RapidState = Readonly<typeof newRapid>;

const windowMask = 2 ** rapidModel.window - 1;

/** A tenth of the mean time, at most 10 s (Wise & Ma 2012), 3 s while few times are known (Kong, Wise & Bhola 2007). */
export function rapidThreshold(times: Pick<SkillTimes, 'answers' | 'meanSeconds'> | null): number {
  const { minAnswers, defaultSeconds, shareOfMean, minSeconds, maxSeconds } = rapidModel;
  if (times === null || times.answers < minAnswers) return defaultSeconds;
  return clamp(shareOfMean * times.meanSeconds, minSeconds, maxSeconds);
}

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

/** Whether many recent timed answers were rapid; below ten of them never, for everybody gives one or two. */
export const rapidFlag = ({ recent, recentTimed }: RapidState): boolean =>
  recentTimed >= rapidModel.minTimed && countBits(recent) >= rapidModel.flagShare * recentTimed;

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++; // each step clears the lowest 1
  return count;
}

/**
 * Solution times of every skill without rapid answers, by the threshold that the times have with them in: one more
 * round would change it by at most the rapid answers' share.
 */
export function measureTimes(log: AnswerLog): SkillTimes[] {
  const all = gather(log, () => 0);
  return gather(log, (skill) => rapidThreshold(all[skill] ?? null));
}

/** Welford's running moments of ln seconds, at least 1. 0 is no time, nor is one so long that the learner had left. */
function gather({ skill, seconds, skills }: AnswerLog, rapidBelow: (skill: number) => number): SkillTimes[] {
  const own = Array.from({ length: skills }, (_, k) => ({ times: { ...noTimes }, from: rapidBelow(k) }));
  for (const [place, value] of seconds.entries()) {
    const { times, from } = own[skill[place] as number] as (typeof own)[number];
    if (!(value > 0 && value <= rapidModel.awaySeconds) || value < from) continue;
    times.answers++;
    times.meanSeconds += (value - times.meanSeconds) / times.answers;
    const log = Math.log(Math.max(value, 1));
    const deviation = log - times.logMean;
    times.logMean += deviation / times.answers;
    times.logM2 += deviation * (log - times.logMean);
  }
  return own.map(({ times }) => times);
}
