import type { AnswerConditions } from '../answer/answer-conditions.js';
import type { AnswerEffect } from '../answer/apply-answer.js';
import { type Answer, countDays } from '../base/common.js';
import { type CalibrationFlag, type CalibrationState, computeCalibration } from '../tracing/calibration.js';
import type { AnswerStates, SkillState } from '../tracing/learner-states.js';
import { isPlateau, type PlateauState } from '../tracing/plateau.js';
import { isRapidFlagged } from '../tracing/response-times.js';
import { adviceConstants } from './advice-constants.js';
import { adviceTexts, withNames } from './advice-texts.js';

/** In order of priority. Rows store the index, so only append. */
export const adviceCodes = [
  'PLATEAU',
  'OVERCONFIDENT',
  'RAPID',
  'REVIEW_DUE',
  'UNDERCONFIDENT',
  'READY',
] as const;

export interface Advice {
  /** Index of the skill in the question. */
  readonly skill: number;
  readonly code: (typeof adviceCodes)[number];
  readonly figures: readonly number[];
}

/**
 * Returns the first code of `adviceCodes` that became true with this answer, for the first skill that has it; null if
 * none.
 */
export function selectAnswerAdvice(
  { skills: before }: Pick<AnswerStates, 'skills'>,
  { skills, masteriesBefore }: Pick<AnswerEffect, 'skills' | 'masteriesBefore'>,
  answer: Pick<Answer, 'occurredAt'>,
  conditions: Pick<AnswerConditions, 'rapidSeconds'>,
): Advice | null {
  let best: Advice | null = null;
  for (let i = 0; i < skills.length; i++) {
    const [was, is] = [before[i] as SkillState, skills[i] as SkillState];
    const advice = selectSkillAdvice(was, is, masteriesBefore[i] as number, answer, conditions);
    if (advice !== null && (best === null || getPriority(advice) < getPriority(best)))
      best = { ...advice, skill: i };
  }
  return best;
}

const getPriority = ({ code }: Advice): number => adviceCodes.indexOf(code);

function selectSkillAdvice(
  before: SkillState,
  after: SkillState,
  masteryBefore: number,
  { occurredAt }: Pick<Answer, 'occurredAt'>,
  { rapidSeconds }: Pick<AnswerConditions, 'rapidSeconds'>,
): Advice | null {
  if (isPlateau(after.plateau) && !isPlateau(before.plateau))
    return createAdvice('PLATEAU', countRecentAttempts(after.plateau));
  const flag = detectNewFlag(before.calibration, after.calibration);
  if (flag === 'over') return createAdvice('OVERCONFIDENT', computeBiasPoints(after.calibration));
  if (isRapidFlagged(after.rapid) && !isRapidFlagged(before.rapid))
    return createAdvice('RAPID', roundRapidThreshold(rapidSeconds));
  if (hasFaded(before.mastery, masteryBefore))
    return createAdvice('REVIEW_DUE', countDays(before.lastAttemptAt, occurredAt));
  if (flag === 'under') return createAdvice('UNDERCONFIDENT');
  return after.ready && !before.ready ? createAdvice('READY') : null;
}

/** Stored in two bytes; 65,535 is reserved. */
const maxFigure = 65_534;

const createAdvice = (code: Advice['code'], ...figures: number[]): Advice => ({
  code,
  skill: 0,
  figures: figures.map((figure) => Math.min(figure, maxFigure)),
});

function detectNewFlag(before: CalibrationState, after: CalibrationState): CalibrationFlag | null {
  if (before === after) return null;
  const flag = computeCalibration(after)?.flag ?? null;
  return flag === computeCalibration(before)?.flag ? null : flag;
}

export function formatAdvice({ code, figures }: Omit<Advice, 'skill'>, skillId: string): string {
  const text: (skill: string, ...figures: readonly number[]) => string = adviceTexts.en.answer[code];
  return withNames((skill) => text(skill, ...figures), skillId);
}

/** @param effective mastery after forgetting */
export const hasFaded = (stored: number, effective: number): boolean =>
  stored >= adviceConstants.strongMastery && effective <= (1 - adviceConstants.fadedShare) * stored;

export const countRecentAttempts = ({ attempts }: PlateauState): number =>
  Math.min(attempts, adviceConstants.plateauAttempts);

/** Percentage points. */
export const computeBiasPoints = (state: CalibrationState): number =>
  Math.round(100 * Math.abs(computeCalibration(state)?.bias ?? 0));

/** Rounded up, so that the text "under N s" is true. */
export const roundRapidThreshold = (thresholdSeconds: number): number => Math.ceil(thresholdSeconds);
