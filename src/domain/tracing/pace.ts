import type { AnswerLog } from '../base/answer-log.js';
import { clamp } from '../base/common.js';
import { normalCdf } from '../base/normal.js';
import { paceModel, rapidModel } from './tracing-constants.js';

export const noTimes = {
  answers: 0,
  meanSeconds: 0,
  /** Mean and squared deviations of ln seconds. */
  logMean: 0,
  logM2: 0,
  correct: 0,
};

export type SkillTimes = Readonly<typeof noTimes>;

/** Accuracy and log-normal time (van der Linden 2006), shrunk to a prior. */
export function skillNorm(times: Omit<SkillTimes, 'meanSeconds'> | null) {
  const { prior, minVariance } = paceModel;
  const { answers, correct, logMean, logM2 } = times ?? noTimes;
  const total = prior.answers + answers;
  const between = ((prior.answers * answers) / total) * (logMean - prior.logMean) ** 2;
  const variance = (prior.answers * prior.logSd ** 2 + logM2 + between) / total;
  return {
    logMean: (prior.answers * prior.logMean + answers * logMean) / total,
    logSd: Math.sqrt(Math.max(variance, minVariance)),
    accuracy: (prior.answers * prior.accuracy + correct) / total,
  };
}

export type SkillNorm = Readonly<ReturnType<typeof skillNorm>>;

export const newPace = {
  timed: 0,
  timedCorrect: 0,
  seconds: 0,
  /** Mean of ln seconds, standardised. Positive is slower. */
  slowness: 0,
  accuracy: 0,
};

export type PaceState = Readonly<typeof newPace>;

/** Ignores rapid, missing and very long times. */
export function updatePace(
  state: PaceState,
  isCorrect: boolean,
  seconds: number | null,
  norm: SkillNorm,
  rapid: boolean,
): PaceState {
  if (rapid || seconds === null || seconds === 0 || seconds > rapidModel.awaySeconds) return state;
  const timed = state.timed + 1;
  const { minStep, maxSlowness } = paceModel;
  const step = Math.max(1 / timed, minStep);
  const slowness = (Math.log(Math.max(seconds, 1)) - norm.logMean) / norm.logSd;
  return {
    timed,
    timedCorrect: state.timedCorrect + (isCorrect ? 1 : 0),
    seconds: state.seconds + seconds,
    slowness: state.slowness + step * (clamp(slowness, -maxSlowness, maxSlowness) - state.slowness),
    accuracy: Math.fround(state.accuracy + step * ((isCorrect ? 1 : 0) - state.accuracy)),
  };
}

export const efficiencyReason = ({ timed }: PaceState, rapid: RapidState) =>
  rapidFlag(rapid) ? 'rapid_answers' : timed < paceModel.minTimed ? 'too_few_times' : null;

/** Accuracy and time compared with the norm (Paas & van Merrienboer 1993), 0 to 100. */
export function efficiencyIndex(pace: PaceState, rapid: RapidState, norm: SkillNorm): number | null {
  if (efficiencyReason(pace, rapid) !== null) return null;
  const { accuracySd, timeWeight } = paceModel;
  const known = correctForGuessing(pace.accuracy);
  const accuracy = (known - correctForGuessing(norm.accuracy)) / accuracySd;
  return 100 * normalCdf((accuracy - timeWeight * known * pace.slowness) / Math.sqrt(1 + timeWeight ** 2));
}

const correctForGuessing = (share: number): number =>
  Math.max(0, (share - paceModel.chance) / (1 - paceModel.chance));

/** Rate-correct score (Woltz & Was 2006). */
export const correctPerMinute = ({ timed, timedCorrect, seconds }: PaceState): number | null =>
  timed === 0 ? null : (60 * timedCorrect) / seconds;

export const newRapid = {
  answers: 0,
  /** One bit per timed answer, newest lowest; 1: rapid. */
  recent: 0,
  recentTimed: 0,
};

export type RapidState = Readonly<typeof newRapid>;

const windowMask = 2 ** rapidModel.window - 1;

/** Threshold in seconds (Wise & Ma 2012; Kong, Wise & Bhola 2007). */
export function rapidThreshold(times: Pick<SkillTimes, 'answers' | 'meanSeconds'> | null): number {
  const { minAnswers, defaultSeconds, shareOfMean, minSeconds, maxSeconds } = rapidModel;
  if (times === null || times.answers < minAnswers) return defaultSeconds;
  return clamp(shareOfMean * times.meanSeconds, minSeconds, maxSeconds);
}

export const isRapid = (seconds: number | null, threshold: number): boolean =>
  seconds !== null && seconds < threshold;

/** Ignores missing and very long times. 0 seconds are rapid. */
export function updateRapid(state: RapidState, seconds: number | null, threshold: number): RapidState {
  if (seconds === null || seconds > rapidModel.awaySeconds) return state;
  const bit = isRapid(seconds, threshold) ? 1 : 0;
  return {
    answers: state.answers + bit,
    recent: ((state.recent << 1) | bit) & windowMask,
    recentTimed: Math.min(state.recentTimed + 1, rapidModel.window),
  };
}

/** Needs several times, because one or two rapid answers are normal. */
export const rapidFlag = ({ recent, recentTimed }: RapidState): boolean =>
  recentTimed >= rapidModel.minTimed && countBits(recent) >= rapidModel.flagShare * recentTimed;

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

export function measureTimes(log: AnswerLog): SkillTimes[] {
  const all = gather(log, () => 0);
  return gather(log, (skill) => rapidThreshold(all[skill] ?? null));
}

/** Welford's algorithm for the moments. */
function gather(answers: AnswerLog, rapidBelow: (skill: number) => number): SkillTimes[] {
  const { skill, correct, skills } = answers;
  const own = Array.from({ length: skills }, (_, k) => ({ times: { ...noTimes }, from: rapidBelow(k) }));
  for (const [place, value] of answers.seconds.entries()) {
    const { times, from } = own[skill[place] as number] as (typeof own)[number];
    if (!(value > 0 && value <= rapidModel.awaySeconds) || value < from) continue;
    times.answers++;
    times.correct += correct[place] as number;
    times.meanSeconds += (value - times.meanSeconds) / times.answers;
    const log = Math.log(Math.max(value, 1));
    const deviation = log - times.logMean;
    times.logMean += deviation / times.answers;
    times.logM2 += deviation * (log - times.logMean);
  }
  return own.map(({ times }) => times);
}
