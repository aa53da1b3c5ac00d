/** Advice that comes with an answer: what the answer has made true of its skill. */

import type { AnswerEffect } from '../answer/apply-answer.js';
import type { Conditions } from '../answer/conditions.js';
import { type Answer, wholeDays } from '../base/common.js';
import { adviceModel } from '../base/params.js';
import { type CalibrationFlag, type CalibrationState, calibration } from '../tracing/calibration.js';
import { rapidFlag } from '../tracing/pace.js';
import { isPlateau, type PlateauState } from '../tracing/plateau.js';
import type { SkillState } from '../tracing/states.js';
import { type Locale, texts, withNames } from './texts.js';

/** The most urgent first. Rows store places of this list: add at the end only. */
export const adviceCodes = [
  'PLATEAU',
  'OVERCONFIDENT',
  'RAPID',
  'REVIEW_DUE',
  'UNDERCONFIDENT',
  'READY',
] as const;

/** Advice as it is stored; its text follows from it and the skill's id. */
export interface Advice {
  readonly code: (typeof adviceCodes)[number];
  readonly figures: readonly number[];
}

/** Advice where the answer made something true, of several the first of `adviceCodes`; null where nothing is new. */
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

/** Two bytes, and one value to spare. */
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

export function adviceText({ code, figures }: Advice, skillId: string, locale: Locale = 'en'): string {
  const text: (skill: string, ...figures: readonly number[]) => string = texts[locale].answer[code];
  return withNames((skill) => text(skill, ...figures), skillId);
}

/** Whether a strong skill has lost much of the `stored` mastery of its last attempt: `effective` is left. */
export const hasFaded = (stored: number, effective: number): boolean =>
  stored >= adviceModel.strongMastery && effective <= (1 - adviceModel.fadedShare) * stored;

export const recentAttempts = ({ attempts }: PlateauState): number =>
  Math.min(attempts, adviceModel.plateauAttempts);

/** Percentage points between confidence and accuracy. */
export const biasPoints = (state: CalibrationState): number =>
  Math.round(100 * Math.abs(calibration(state)?.bias ?? 0));

/** Rounded up: "under that many seconds" is true of every answer below the threshold. */
export const rapidFigure = (thresholdSeconds: number): number => Math.ceil(thresholdSeconds);
