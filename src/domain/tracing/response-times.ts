import { type AnswerLog, countSkillSets } from '../base/answer-log.js';
import { clamp } from '../base/common.js';
import { normalCdf } from '../base/normal-distribution.js';
import { paceConstants, rapidConstants } from './tracing-constants.js';

export const emptyTimes = {
  answers: 0,
  meanSeconds: 0,
  /** Mean and squared deviations of ln seconds. */
  logMean: 0,
  logM2: 0,
  correct: 0,
};

export type SkillTimes = Readonly<typeof emptyTimes>;

/** Accuracy and log-normal time (van der Linden 2006), shrunk to a prior. */
export function computeSkillNorm(times: Omit<SkillTimes, 'meanSeconds'> | null) {
  const { prior, minVariance } = paceConstants;
  const { answers, correct, logMean, logM2 } = times ?? emptyTimes;
  const total = prior.answers + answers;
  const between = ((prior.answers * answers) / total) * (logMean - prior.logMean) ** 2;
  const variance = (prior.answers * prior.logSd ** 2 + logM2 + between) / total;
  return {
    logMean: (prior.answers * prior.logMean + answers * logMean) / total,
    logSd: Math.sqrt(Math.max(variance, minVariance)),
    accuracy: (prior.answers * prior.accuracy + correct) / total,
  };
}

export type SkillNorm = Readonly<ReturnType<typeof computeSkillNorm>>;

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
  isRapidAnswer: boolean,
): PaceState {
  if (isRapidAnswer || seconds === null || seconds === 0 || seconds > rapidConstants.awaySeconds)
    return state;
  const timed = state.timed + 1;
  const { minStep, maxSlowness } = paceConstants;
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

export const missingEfficiencyReason = ({ timed }: PaceState, rapid: RapidState) =>
  isRapidFlagged(rapid) ? 'rapid_answers' : timed < paceConstants.minTimed ? 'too_few_times' : null;

/** Accuracy and time compared with the norm (Paas & van Merrienboer 1993), 0 to 100. */
export function computeEfficiencyIndex(pace: PaceState, rapid: RapidState, norm: SkillNorm): number | null {
  if (missingEfficiencyReason(pace, rapid) !== null) return null;
  const { accuracySd, timeWeight } = paceConstants;
  const knownShare = correctForGuessing(pace.accuracy);
  const accuracy = (knownShare - correctForGuessing(norm.accuracy)) / accuracySd;
  return (
    100 * normalCdf((accuracy - timeWeight * knownShare * pace.slowness) / Math.sqrt(1 + timeWeight ** 2))
  );
}

const correctForGuessing = (share: number): number =>
  Math.max(0, (share - paceConstants.chance) / (1 - paceConstants.chance));

/** Rate-correct score (Woltz & Was 2006). */
export const computeCorrectPerMinute = ({ timed, timedCorrect, seconds }: PaceState): number | null =>
  timed === 0 ? null : (60 * timedCorrect) / seconds;

export const newRapid = {
  answers: 0,
  /** One bit per timed answer, newest lowest; 1: rapid. */
  recent: 0,
  recentTimed: 0,
};

export type RapidState = Readonly<typeof newRapid>;

const windowMask = 2 ** rapidConstants.window - 1;

/** Threshold in seconds (Wise & Ma 2012; Kong, Wise & Bhola 2007). */
export function computeRapidThreshold(times: Pick<SkillTimes, 'answers' | 'meanSeconds'> | null): number {
  const { minAnswers, defaultSeconds, shareOfMean, minSeconds, maxSeconds } = rapidConstants;
  if (times === null || times.answers < minAnswers) return defaultSeconds;
  return clamp(shareOfMean * times.meanSeconds, minSeconds, maxSeconds);
}

export const isRapid = (seconds: number | null, threshold: number): boolean =>
  seconds !== null && seconds < threshold;

/** Ignores missing and very long times. 0 seconds are rapid. */
export function updateRapid(state: RapidState, seconds: number | null, threshold: number): RapidState {
  if (seconds === null || seconds > rapidConstants.awaySeconds) return state;
  const bit = isRapid(seconds, threshold) ? 1 : 0;
  return {
    answers: state.answers + bit,
    recent: ((state.recent << 1) | bit) & windowMask,
    recentTimed: Math.min(state.recentTimed + 1, rapidConstants.window),
  };
}

/** Needs several times, because one or two rapid answers are normal. */
export const isRapidFlagged = ({ recent, recentTimed }: RapidState): boolean =>
  recentTimed >= rapidConstants.minTimed && countBits(recent) >= rapidConstants.flagShare * recentTimed;

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** By skill set. */
export function measureTimes(log: AnswerLog): SkillTimes[] {
  const unfiltered = sumTimes(log, () => 0);
  return sumTimes(log, (skill) => computeRapidThreshold(unfiltered[skill] ?? null));
}

/** Welford's algorithm for the moments. */
function sumTimes(answerLog: AnswerLog, rapidBelow: (skill: number) => number): SkillTimes[] {
  const { skill, correct } = answerLog;
  const timesBySkill = Array.from({ length: countSkillSets(answerLog) }, (_, k) => ({
    times: { ...emptyTimes },
    from: rapidBelow(k),
  }));
  for (const [index, value] of answerLog.seconds.entries()) {
    const { times, from } = timesBySkill[skill[index] as number] as (typeof timesBySkill)[number];
    if (!(value > 0 && value <= rapidConstants.awaySeconds) || value < from) continue;
    times.answers++;
    times.correct += correct[index] as number;
    times.meanSeconds += (value - times.meanSeconds) / times.answers;
    const log = Math.log(Math.max(value, 1));
    const deviation = log - times.logMean;
    times.logMean += deviation / times.answers;
    times.logM2 += deviation * (log - times.logMean);
  }
  return timesBySkill.map(({ times }) => times);
}
