import type { AnswerEffect } from '../answer/apply-answer.js';
import type { Conditions } from '../answer/conditions.js';
import type { Answer } from '../base/types.js';
import { type CalibrationFlag, type CalibrationState, calibration } from '../tracing/calibration.js';
import { isPlateau } from '../tracing/plateau.js';
import { rapidFlag } from '../tracing/rapid.js';
import type { SkillState } from '../tracing/states.js';
import { isMastered } from '../tracing/states.js';
import { biasPoints, hasFaded, rapidFigure, recentAttempts, wholeDays } from './advice-rules.js';
import { type Locale, texts, withName } from './advice-texts.js';

/** Codes of the advice that comes with an answer, the most urgent first; places are stored, so add at the end. */
export const adviceCodes = [
  'PLATEAU',
  'OVERCONFIDENT',
  'RAPID',
  'REVIEW_DUE',
  'UNDERCONFIDENT',
  'READY',
] as const;

export type AdviceCode = (typeof adviceCodes)[number];

/** Advice as it is stored; its text is made again from it and the skill's id. */
export interface Advice {
  readonly code: AdviceCode;
  /** Numbers in the text, at most one, whole, 0 to 65534: two bytes, and one value to spare. */
  readonly figures: readonly number[];
}

/**
 * Advice on the answer that made something new hold: a plateau or a flag that starts, a skill mastered, or one
 * found to have faded. Of several the first in the order of `adviceCodes`; null where nothing is new.
 *
 * @param before the skill as the answer before left it
 * @param effect what the answer made of it
 */
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
  // Before: at the last attempt, so that a return after a pause does not tell the same twice.
  return isMastered(after, after.mastery) && !isMastered(before, before.mastery) ? advice('READY') : null;
}

const maxFigure = 65_534;

const advice = (code: AdviceCode, ...figures: number[]): Advice => ({
  code,
  figures: figures.map((figure) => Math.min(figure, maxFigure)),
});

/** The flag that holds since this answer. */
function newFlag(before: CalibrationState, after: CalibrationState): CalibrationFlag | null {
  if (before === after) return null;
  const flag = calibration(after)?.flag ?? null;
  return flag === calibration(before)?.flag ? null : flag;
}

type AdviceText = (skill: string, ...figures: readonly number[]) => string;

/** The advice in words, at most 200 characters: a long skill id is cut, whole characters at a time. */
export function adviceText({ code, figures }: Advice, skillId: string, locale: Locale = 'en'): string {
  const text: AdviceText = texts[locale].answer[code];
  return withName(skillId, (skill) => text(skill, ...figures));
}
