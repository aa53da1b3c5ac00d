import { normalCdf } from '../base/normal.js';
import { paceModel, rapidModel } from '../base/params.js';
import { clamp } from '../base/probability.js';

/** Solution times of one skill, rapid answers left out; all zero where none was measured. */
export const noTimes = {
  answers: 0,
  /** Mean of seconds. */
  meanSeconds: 0,
  /** Mean of ln seconds, and the sum of squared deviations from it. */
  logMean: 0,
  logM2: 0,
};

export type SkillTimes = Readonly<typeof noTimes>;

/** What is usual for a skill: mean and standard deviation of ln seconds. */
export interface TimeNorm {
  readonly logMean: number;
  readonly logSd: number;
}

/**
 * The skill's time norm, drawn to a general prior while few times are known. Times are taken for log-normal
 * (van der Linden 2006).
 */
export function timeNorm(times: Pick<SkillTimes, 'answers' | 'logMean' | 'logM2'> | null): TimeNorm {
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

/** Pace of one learner on one skill, over answers that were timed and not rapid. */
export const newPace = {
  timed: 0,
  timedCorrect: 0,
  seconds: 0,
  /** Running mean of (accuracy - time) / sqrt 2, both standardised; 0 is as expected for the skill. */
  efficiency: 0,
};

export type PaceState = Readonly<typeof newPace>;

/**
 * Counts an answer; one that is rapid, has no time, or so long a time that the learner had left, changes nothing.
 * The running mean is plain over the first ten, then weighs the last one by a tenth.
 *
 * @param pCorrect probability of a right answer before it was given
 * @param seconds 0 or more; null: not reported
 */
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

/**
 * One answer's accuracy against its time, both standardised and cut at 3.
 * Source: the balanced integration score (Liesefeld & Janczyk 2019) in the form of relative efficiency (Paas & van
 * Merrienboer 1993), ln time in the place of mental effort.
 */
function relativeEfficiency(isCorrect: boolean, pCorrect: number, seconds: number, norm: TimeNorm): number {
  const { maxScore, minAnswerVariance } = paceModel;
  const spread = Math.sqrt(Math.max(pCorrect * (1 - pCorrect), minAnswerVariance));
  const accuracy = clamp(((isCorrect ? 1 : 0) - pCorrect) / spread, -maxScore, maxScore);
  const time = clamp((Math.log(Math.max(seconds, 1)) - norm.logMean) / norm.logSd, -maxScore, maxScore);
  return (accuracy - time) * Math.SQRT1_2;
}

/**
 * Time-based efficiency from 0 to 100, 50 being as expected of this learner; null before the third timed answer, and
 * while none of them is right: to be wrong fast is no efficiency.
 */
export const efficiencyIndex = ({ timed, timedCorrect, efficiency }: PaceState): number | null =>
  timed < paceModel.minTimed || timedCorrect === 0 ? null : 100 * normalCdf(efficiency);

/** Right answers per minute of timed work (rate-correct score; Woltz & Was 2006); null without a time. */
export const correctPerMinute = ({ timed, timedCorrect, seconds }: PaceState): number | null =>
  timed === 0 ? null : (60 * timedCorrect) / seconds;
