/** Advice on the skills that a learner has answered, and on those to go on to. */

import { studyModel } from '../base/params.js';
import { type Section, sections } from '../base/types.js';
import { shareOf } from '../catalogue/catalogue.js';
import { rapidThreshold } from '../tracing/rapid.js';
import { biasPoints, rapidFigure, recentAttempts, wholeDays } from './advice-rules.js';
import { type StudyTexts, withName } from './advice-texts.js';
import { type Judged, judge, type StateCode } from './study-codes.js';
import { nameOf, type SkillAdvice, type SkillsContext } from './study-context.js';
import { adviseNext } from './study-next.js';

/** In no order, and each skill at most once. */
export function adviseSkills(context: SkillsContext): SkillAdvice[] {
  const judged = context.views.map((view) => judge(view, context.measures));
  const top = topPractice(judged);
  const advice: SkillAdvice[] = [];
  for (const one of judged) {
    const { code, gain } = one;
    if (code === null || code === 'READY') continue;
    const text = (texts: StudyTexts): string => stateText(texts, code, one, one === top, context);
    advice.push({ code, skillId: one.view.skillId, gain, text });
  }
  return [...advice, ...adviseNext(context, judged)];
}

/**
 * The skill with the highest gain, of several the first; a review is no practice: it brings back, in a few answers, what
 * was there.
 */
const topPractice = (judged: readonly Judged[]): Judged | null =>
  judged.reduce<Judged | null>(
    (top, one) => (one.code !== 'REVIEW_DUE' && one.gain > (top?.gain ?? 0) ? one : top),
    null,
  );

function stateText(
  texts: StudyTexts,
  code: Exclude<StateCode, 'READY'>,
  { view, gain }: Judged,
  isTop: boolean,
  context: SkillsContext,
): string {
  const { state, model, placement } = view;
  const say = (text: (skill: string) => string): string => withName(nameOf(context, view.skillId), text);
  switch (code) {
    case 'PLATEAU':
      return say((skill) => texts.PLATEAU(skill, recentAttempts(state.plateau)));
    case 'OVERCONFIDENT':
      return say((skill) => texts.OVERCONFIDENT(skill, biasPoints(state.calibration)));
    case 'RAPID':
      return say((skill) => texts.RAPID(skill, rapidFigure(rapidThreshold(model.times))));
    case 'REVIEW_DUE':
      return say((skill) => texts.REVIEW_DUE(skill, wholeDays(state.lastAttemptAt, context.now)));
    case 'WEAK_SKILL': {
      const { section } = placement;
      const points = pointsOf(gain, section, context);
      return say((skill) => texts.WEAK_SKILL(skill, { section, isTop, points }));
    }
    case 'SLOW':
    case 'UNDERCONFIDENT':
      return say(texts[code]);
  }
}

/** Whole points per hour; null where there are none, or too few answers in the section to tell. */
function pointsOf(gain: number, of: Section | null, { measures }: SkillsContext): number | null {
  const isKnown = sections.every(
    (section) =>
      shareOf({ section: of }, section) === 0 || measures[section].answers >= studyModel.pointsFrom,
  );
  const points = Math.round(gain);
  return isKnown && points > 0 ? points : null;
}
