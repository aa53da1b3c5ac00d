import type { AnswerEffect } from '../answer/apply-answer.js';
import type { Conditions } from '../answer/conditions.js';
import { type Answer, wholeDays } from '../base/common.js';
import { type CalibrationFlag, type CalibrationState, calibration } from '../tracing/calibration.js';
import { rapidFlag } from '../tracing/pace.js';
import { isPlateau, type PlateauState } from '../tracing/plateau.js';
import type { SkillState } from '../tracing/states.js';
import { adviceModel } from './advice-constants.js';
import { texts, withNames } from './texts.js';

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
  readonly code: (typeof adviceCodes)[number];
  readonly figures: readonly number[];
}

/** Returns the first code of `adviceCodes` that became true with this answer; null if none. */
export function adviseOn(
  before: SkillState,
  { skill: after, masteryBefore }: Pick<AnswerEffect, 'skill' | 'masteryBefore'>,
  { occurredAt }: Pick<Answer, 'occurredAt'>,
  { rapidSeconds }: Pick<Conditions, 'rapidSeconds'>,
): Advice | null {
  if (isPlateau(after.plateau) && !isPlateau(before.plateau)) {
    return advice('PLATEAU', recentAttempts(after.plateau));
  }
  const flag = newFlag(before.calibration, after.calibration);
  if (flag === 'over') return advice('OVERCONFIDENT', biasPoints(after.calibration));
  if (rapidFlag(after.rapid) && !rapidFlag(before.rapid)) return advice('RAPID', rapidFigure(rapidSeconds));
  if (hasFaded(before.mastery, masteryBefore)) {
    return advice('REVIEW_DUE', wholeDays(before.lastAttemptAt, occurredAt));
  }
  if (flag === 'under') return advice('UNDERCONFIDENT');
  return after.ready && !before.ready ? advice('READY') : null;
}

/** Stored in two bytes; 65,535 is reserved. */
const maxFigure = 65_534;

const advice = (code: Advice['code'], ...figures: number[]): Advice => ({
  code,
  figures: figures.map((figure) => Math.min(figure, maxFigure)),
});

function newFlag(before: CalibrationState, after: CalibrationState): CalibrationFlag | null {
  if (before === after) return null;
  const flag = calibration(after)?.flag ?? null;
  return flag === calibration(before)?.flag ? null : flag;
}

export function adviceText({ code, figures }: Advice, skillId: string): string {
  const text: (skill: string, ...figures: readonly number[]) => string = texts.en.answer[code];
  return withNames((skill) => text(skill, ...figures), skillId);
}

/** @param effective mastery after forgetting */
export const hasFaded = (stored: number, effective: number): boolean =>
  stored >= adviceModel.strongMastery && effective <= (1 - adviceModel.fadedShare) * stored;

export const recentAttempts = ({ attempts }: PlateauState): number =>
  Math.min(attempts, adviceModel.plateauAttempts);

/** Percentage points. */
export const biasPoints = (state: CalibrationState): number =>
  Math.round(100 * Math.abs(calibration(state)?.bias ?? 0));

/** Rounded up, so that the text "under N s" is true. */
export const rapidFigure = (thresholdSeconds: number): number => Math.ceil(thresholdSeconds);
