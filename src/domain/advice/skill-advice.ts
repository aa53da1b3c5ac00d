/** What the state of a learner's skill calls for. */

import { wholeDays } from '../base/days.js';
import { studyModel } from '../base/params.js';
import { type Section, sections } from '../base/types.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import type { ForecastSubject, Standing } from '../score/standing.js';
import { calibration } from '../tracing/calibration.js';
import { efficiencyIndex } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import { rapidFlag, rapidThreshold } from '../tracing/rapid.js';
import { isMastered, type SkillState } from '../tracing/states.js';
import { biasPoints, hasFaded, rapidFigure, recentAttempts } from './answer-advice.js';
import { practiceGain, reviewGain } from './gain.js';
import { type StudyTexts, withNames } from './texts.js';

/** What advice on a learner's skills rests on. Views are by skill id: ties end alike in whatever order they were read. */
export type SkillsContext = Pick<ForecastSubject, 'views' | 'model' | 'now'> & Pick<Standing, 'measures'>;

/** Codes of one skill's state, the most urgent first: only the first that holds counts. */
type StateCode =
  | 'PLATEAU'
  | 'OVERCONFIDENT'
  | 'RAPID'
  | 'REVIEW_DUE'
  | 'SLOW'
  | 'WEAK_SKILL'
  | 'UNDERCONFIDENT'
  | 'READY';

export interface SkillAdvice {
  readonly code: StateCode | 'EXPLORE';
  readonly skillId: string;
  /** Points per hour. */
  readonly gain: number;
  /** In words, at most 200 characters; made for the advice that is given only. */
  text(texts: StudyTexts): string;
}

/** A skill of the learner, what its state calls for, and the points per hour of doing so. */
export interface Judged {
  readonly view: SkillView;
  readonly code: StateCode | null;
  readonly gain: number;
}

export function judge(view: SkillView, measures: Standing['measures']): Judged {
  const code = codeOf(view.state, view.mastery);
  const gain = code === 'REVIEW_DUE' ? reviewGain(view, measures) : practiceGain(view, measures);
  return { view, code, gain };
}

/** @param mastery the effective one now */
function codeOf(state: SkillState, mastery: number): StateCode | null {
  if (isPlateau(state.plateau)) return 'PLATEAU';
  const flag = calibration(state.calibration)?.flag ?? null;
  if (flag === 'over') return 'OVERCONFIDENT';
  if (rapidFlag(state.rapid)) return 'RAPID';
  if (hasFaded(state.mastery, mastery)) return 'REVIEW_DUE';
  if (isSlow(state, mastery)) return 'SLOW';
  if (isWeak(state, mastery)) return 'WEAK_SKILL';
  if (flag === 'under') return 'UNDERCONFIDENT';
  return isMastered(state, mastery) ? 'READY' : null;
}

/** Accurate, but slower than is usual for the skill. */
function isSlow({ pace }: SkillState, mastery: number): boolean {
  const { slow } = studyModel;
  if (pace.timed < slow.timed || mastery < slow.mastery) return false;
  const index = efficiencyIndex(pace);
  return index !== null && index <= slow.index;
}

const isWeak = ({ attempts }: SkillState, mastery: number): boolean =>
  mastery < studyModel.weak.mastery && attempts >= studyModel.weak.attempts;

/** Advice on the judged skills, but for mastered ones, which call for another skill. */
export function adviseSkills(context: SkillsContext, judged: readonly Judged[]): SkillAdvice[] {
  const top = topPractice(judged);
  const advice: SkillAdvice[] = [];
  for (const one of judged) {
    const { code, gain, view } = one;
    if (code === null || code === 'READY') continue;
    const { skillId } = view;
    const text = (texts: StudyTexts): string =>
      withNames(stateText(texts, code, one, one === top, context), nameOf(context, skillId));
    advice.push({ code, skillId, gain, text });
  }
  return advice;
}

/** The skill with the highest gain, of several the first. A review is no practice: a few answers bring back what was there. */
const topPractice = (judged: readonly Judged[]): Judged | null =>
  judged.reduce<Judged | null>(
    (top, one) => (one.code !== 'REVIEW_DUE' && one.gain > (top?.gain ?? 0) ? one : top),
    null,
  );

/** What people call a skill. */
export const nameOf = ({ model }: SkillsContext, skillId: string): string =>
  model.catalogue.entries.get(skillId)?.name ?? skillId;

function stateText(
  texts: StudyTexts,
  code: Exclude<StateCode, 'READY'>,
  { view: { state, model, placement }, gain }: Judged,
  isTop: boolean,
  context: SkillsContext,
): (skill: string) => string {
  switch (code) {
    case 'PLATEAU':
      return (skill) => texts.PLATEAU(skill, recentAttempts(state.plateau));
    case 'OVERCONFIDENT':
      return (skill) => texts.OVERCONFIDENT(skill, biasPoints(state.calibration));
    case 'RAPID':
      return (skill) => texts.RAPID(skill, rapidFigure(rapidThreshold(model.times)));
    case 'REVIEW_DUE':
      return (skill) => texts.REVIEW_DUE(skill, wholeDays(state.lastAttemptAt, context.now));
    case 'WEAK_SKILL': {
      const { section } = placement;
      return (skill) => texts.WEAK_SKILL(skill, { section, isTop, points: pointsOf(gain, section, context) });
    }
    default:
      return texts[code];
  }
}

/** Whole points per hour; null where there are none, or the section has too few answers. */
function pointsOf(gain: number, of: Section | null, { measures }: SkillsContext): number | null {
  const isKnown = sections.every(
    (section) =>
      shareOf({ section: of }, section) === 0 || measures[section].answers >= studyModel.pointsFrom,
  );
  const points = Math.round(gain);
  return isKnown && points > 0 ? points : null;
}
