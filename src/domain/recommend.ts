import { type CalibrationFlag, type CalibrationState, calibration } from './calibration.js';
import type { Conditions } from './conditions.js';
import { dayMs } from './forgetting.js';
import { type AnswerEffect, isMastered } from './mastery.js';
import { adviceModel } from './params.js';
import { isPlateau, type PlateauState } from './plateau.js';
import { rapidFlag } from './rapid.js';
import type { Answer, SkillState } from './types.js';

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
  if (isPlateau(after.plateau) && !isPlateau(before.plateau)) return advice('PLATEAU', recent(after.plateau));
  const flag = newFlag(before.calibration, after.calibration);
  if (flag === 'over') return advice('OVERCONFIDENT', biasPoints(after.calibration));
  // Rounded up, so that "under that many seconds" is true of every answer below the threshold.
  if (rapidFlag(after.rapid) && !rapidFlag(before.rapid)) return advice('RAPID', Math.ceil(rapidSeconds));
  if (hasFaded(before.mastery, masteryBefore)) {
    return advice('REVIEW_DUE', Math.floor((occurredAt - before.lastAttemptAt) / dayMs));
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

/** Attempts that the plateau was found on: older ones have next to no weight. */
const recent = ({ attempts }: PlateauState): number => Math.min(attempts, adviceModel.plateauAttempts);

/** The flag that holds since this answer. */
function newFlag(before: CalibrationState, after: CalibrationState): CalibrationFlag | null {
  if (before === after) return null;
  const flag = calibration(after)?.flag ?? null;
  return flag === calibration(before)?.flag ? null : flag;
}

const biasPoints = (state: CalibrationState): number =>
  Math.round(100 * Math.abs(calibration(state)?.bias ?? 0));

/** Whether a strong skill had lost much to forgetting when the learner returned to it. */
const hasFaded = (stored: number, effective: number): boolean =>
  stored >= adviceModel.strongMastery && effective <= (1 - adviceModel.fadedShare) * stored;

type AdviceText = (skill: string, ...figures: readonly number[]) => string;

/**
 * All texts. The share that confidence is ahead by stands for confidence and accuracy: the two are not kept apart
 * for the answers that came with a confidence.
 */
const texts: Readonly<Record<AdviceCode, AdviceText>> = {
  PLATEAU: (skill, attempts) =>
    `Change approach on ${skill}: ${attempts} recent attempts brought little progress. Study a worked example, then try easier questions.`,
  OVERCONFIDENT: (skill, points) =>
    `Slow down on ${skill}: your confidence is ${points} percentage points ahead of your accuracy.`,
  RAPID: (skill, seconds) => `Take more time on ${skill}: many answers came in under ${seconds} s.`,
  REVIEW_DUE: (skill, days) => `Review ${skill}: it was strong but had not been practised for ${days} days.`,
  UNDERCONFIDENT: (skill) => `Trust your work on ${skill}: accuracy exceeds your confidence.`,
  READY: (skill) => `${skill} is mastered: move on to the next skill.`,
};

/** The advice in words, at most 200 characters: a long skill id is cut, whole characters at a time. */
export function adviceText({ code, figures }: Advice, skillId: string): string {
  const text = texts[code];
  return text(shorten(skillId, adviceModel.maxLength - text('', ...figures).length), ...figures);
}

/** The text in at most that many UTF-16 units, with an ellipsis where it was cut. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  let kept = '';
  for (const character of text) {
    if (kept.length + character.length >= length) break;
    kept += character;
  }
  return `${kept}…`;
}
