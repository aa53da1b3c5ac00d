import { onceFor, type Section, sections, wholeDays } from '../base/common.js';
import { goalModel } from '../base/score-constants.js';
import { shareOf } from '../catalogue/catalogue.js';
import { skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { isMastered, type SkillContext } from '../learner/expected.js';
import { type SkillView, viewUnseen } from '../learner/skill-view.js';
import { changePoints } from '../prediction/term-texts.js';
import { type Standing, trustOf } from '../score/assessment.js';
import { daysUntil, isOver } from '../score/goal.js';
import type { GoalOutlook } from '../score/learner-forecast.js';
import { calibration } from '../tracing/calibration.js';
import { rapidFlag, rapidThreshold } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import type { SkillState } from '../tracing/states.js';
import { activityModel } from '../tracing/tracing-constants.js';
import { isFalling } from '../tracing/trend.js';
import { studyModel } from './advice-constants.js';
import { biasPoints, hasFaded, rapidFigure, recentAttempts } from './answer-advice.js';
import { firstHour, practiceGain, reviewGain } from './gain.js';
import { type GoalFigures, type Locale, type StudyTexts, texts, withNames } from './texts.js';

export interface StudyContext extends Pick<Standing, 'learner' | 'views' | 'model' | 'now' | 'measures'> {
  /** Default goals cause no advice. */
  readonly goal: GoalFigures & Pick<GoalOutlook, 'isSet' | 'onTrack'>;
  readonly locale: Locale;
}

export interface StudyAdvice {
  readonly code: keyof StudyTexts;
  readonly skillId: string | null;
  readonly text: string;
}

type StateCode = Exclude<keyof StudyTexts, 'EXPLORE' | 'DECLINE' | 'NO_SECTION' | 'GOAL_GAP'>;

interface SkillAdvice {
  readonly code: StateCode | 'EXPLORE';
  readonly skillId: string;
  /** Points per hour. */
  readonly gain: number;
  readonly text: () => string;
}

/** At most five: decline, missing section, goal, then skills by gain (science notes 7). */
export function studyAdvice(context: StudyContext): StudyAdvice[] {
  // A learner has each skill id once, so the comparison never returns 0.
  const views = [...context.views].sort((a, b) => (a.skillId < b.skillId ? -1 : 1));
  const judged = views.map((view) => judge(view, context));
  const bestUnseen = unseenBy(context);
  const first = [...decline(context), ...missingSection(context), ...goalGap(context)];
  const skills = [
    ...adviseSkills(context, judged),
    ...sections.flatMap((section) => explore(context, section, bestUnseen)),
    ...ready(context, judged, bestUnseen),
  ]
    .sort((a, b) => b.gain - a.gain || compareIds(a.skillId, b.skillId))
    .slice(0, studyModel.maxEntries - first.length);
  return [...first, ...skills.map(({ code, skillId, text }) => ({ code, skillId, text: text() }))];
}

const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const idleDaysOf = (views: readonly SkillView[], now: number): number =>
  wholeDays(Math.max(0, ...views.map(({ state }) => state.lastAttemptAt)), now);

export function noAdviceReason(context: StudyContext): string {
  const { views, now, locale } = context;
  const { none } = texts[locale];
  const idleDays = idleDaysOf(views, now);
  const least = studyModel.weak.attempts;
  if (idleDays >= activityModel.days) return none.IDLE(idleDays);
  if (views.every(({ state }) => state.attempts < least)) return none.FEW(least);
  return views.every((view) => isMastered(view, context)) ? none.DONE() : none.STEADY();
}

function decline({ learner: { trend }, views, now, locale }: StudyContext): StudyAdvice[] {
  const isIdle = idleDaysOf(views, now) >= activityModel.days;
  if (!isFalling(trend) || isIdle) return [];
  return [{ code: 'DECLINE', skillId: null, text: texts[locale].study.DECLINE(changePoints(trend)) }];
}

function missingSection({ measures, locale }: StudyContext): StudyAdvice[] {
  const missing = sections.find((section) => measures[section].answers === 0);
  const measured = sections.find((section) => measures[section].answers > 0);
  if (missing === undefined || measured === undefined) return [];
  return [{ code: 'NO_SECTION', skillId: null, text: texts[locale].study.NO_SECTION(missing, measured) }];
}

/** Without the date if it is beyond a year, because the forecast ends there. */
function goalGap({ goal, now, locale }: StudyContext): StudyAdvice[] {
  const { isSet, onTrack, targetDate } = goal;
  if (!isSet || onTrack || isOver(targetDate, now)) return [];
  const isFar = (daysUntil(targetDate, now) ?? 0) > goalModel.horizonDays;
  const text = texts[locale].study.GOAL_GAP(isFar ? { ...goal, targetDate: null } : goal);
  return [{ code: 'GOAL_GAP', skillId: null, text }];
}

export type Judged = ReturnType<typeof judge>;

export function judge(view: SkillView, context: SkillContext & Pick<StudyContext, 'measures'>) {
  const { measures } = context;
  const code = codeOf(view, context);
  const gain = code === 'REVIEW_DUE' ? reviewGain(view, measures) : practiceGain(view, measures);
  return { view, code, gain };
}

function codeOf(view: SkillView, context: SkillContext): StateCode | null {
  const { state, mastery } = view;
  if (isPlateau(state.plateau)) return 'PLATEAU';
  const flag = calibration(state.calibration)?.flag ?? null;
  if (flag === 'over') return 'OVERCONFIDENT';
  if (rapidFlag(state.rapid)) return 'RAPID';
  if (hasFaded(state.mastery, mastery)) return 'REVIEW_DUE';
  if (isSlow(state, mastery)) return 'SLOW';
  if (mastery < studyModel.weak.mastery && state.attempts >= studyModel.weak.attempts) return 'WEAK_SKILL';
  if (flag === 'under') return 'UNDERCONFIDENT';
  return isMastered(view, context) ? 'READY' : null;
}

function isSlow({ pace }: SkillState, mastery: number): boolean {
  const { slow } = studyModel;
  const isAccurate = mastery >= slow.mastery && pace.accuracy >= slow.accuracy;
  return isAccurate && pace.timed >= slow.timed && pace.slowness >= slow.slowness;
}

const highest = (judged: readonly Judged[]): Judged | null =>
  judged.reduce<Judged | null>((top, one) => (top === null || one.gain > top.gain ? one : top), null);

function adviseSkills(context: StudyContext, judged: readonly Judged[]): SkillAdvice[] {
  // A review needs few answers, so it does not compete with practice.
  const top = highest(judged.filter(({ code }) => code !== 'REVIEW_DUE'));
  return judged.flatMap((one) => {
    const { code, gain, view } = one;
    if (code === null || code === 'READY') return [];
    const { skillId } = view;
    const text = (skill: string): string => stateText(code, skill, one, one === top, context);
    return [{ code, skillId, gain, text: () => withNames(text, nameOf(context, skillId)) }];
  });
}

export const nameOf = ({ model }: Pick<StudyContext, 'model'>, skillId: string): string =>
  model.catalogue.entries.get(skillId)?.name ?? skillId;

function stateText(
  code: Exclude<StateCode, 'READY'>,
  skill: string,
  { view: { state, model, placement }, gain }: Judged,
  isTop: boolean,
  context: StudyContext,
): string {
  const { study } = texts[context.locale];
  switch (code) {
    case 'PLATEAU':
      return study.PLATEAU(skill, recentAttempts(state.plateau));
    case 'OVERCONFIDENT':
      return study.OVERCONFIDENT(skill, biasPoints(state.calibration));
    case 'RAPID':
      return study.RAPID(skill, rapidFigure(rapidThreshold(model.times)));
    case 'REVIEW_DUE':
      return study.REVIEW_DUE(skill, wholeDays(state.lastAttemptAt, context.now));
    case 'WEAK_SKILL': {
      const { section } = placement;
      return study.WEAK_SKILL(skill, { section, isTop, points: pointsOf(gain, section, context) });
    }
    default:
      return study[code](skill);
  }
}

/** Points per hour; null if zero, or if the section has too few answers. */
function pointsOf(gain: number, of: Section | null, { measures }: StudyContext): number | null {
  const isKnown = sections.every(
    (section) =>
      shareOf({ section: of }, section) === 0 || measures[section].answers >= studyModel.pointsFrom,
  );
  const points = Math.round(gain);
  return isKnown && points > 0 ? points : null;
}

type BestUnseen = (section: Section | null) => Judged | null;

function unseenBy(context: StudyContext): BestUnseen {
  const { views, model, now } = context;
  let seen: ReadonlySet<string> | null = null;
  return (section) => {
    const known = seen ?? new Set(views.map((view) => view.skillId));
    seen = known;
    const best = rankingOf(model)[section ?? 'none'].find((skillId) => !known.has(skillId));
    return best === undefined ? null : judge(viewUnseen(best, model, now), context);
  };
}

/** Cached, because the catalogue may be large. */
const rankingOf = onceFor((model: TenantModel): Record<Section | 'none', string[]> => {
  const ranked = Array.from(model.catalogue.entries, ([skillId, { section, weight }]) => {
    const skill = skillModelOf(model, skillId);
    return { skillId, section, value: weight * trustOf({ model: skill }) * firstHour(skill.parameters) };
  }).sort((a, b) => b.value - a.value || compareIds(a.skillId, b.skillId));
  const idsOf = (of: Section | null) =>
    ranked.flatMap(({ skillId, section }) => (section === of ? [skillId] : []));
  return { math: idsOf('math'), rw: idsOf('rw'), none: idsOf(null) };
});

function explore(context: StudyContext, section: Section, bestUnseen: BestUnseen): SkillAdvice[] {
  const { seenWeight, knownWeight } = context.measures[section];
  const unseen = seenWeight / knownWeight >= studyModel.coverage ? null : bestUnseen(section);
  if (unseen === null) return [];
  const { view, gain } = unseen;
  const { skillId } = view;
  const text = (skill: string): string => texts[context.locale].study.EXPLORE(skill, section);
  return [{ code: 'EXPLORE', skillId, gain, text: () => withNames(text, nameOf(context, skillId)) }];
}

/** Recommends the next skill after the most recently practised mastered skill. */
function ready(context: StudyContext, judged: readonly Judged[], bestUnseen: BestUnseen): SkillAdvice[] {
  for (const { view, gain } of lastMastered(judged)) {
    const { section } = view.placement;
    const isOpen = ({ view }: Judged) => view.placement.section === section && !isMastered(view, context);
    const others = judged.filter(isOpen);
    const unseen = bestUnseen(section);
    const next = highest(unseen === null ? others : [unseen, ...others])?.view.skillId;
    if (next === undefined) continue;
    const { skillId } = view;
    const { READY } = texts[context.locale].study;
    const text = () => withNames(READY, nameOf(context, skillId), nameOf(context, next));
    return [{ code: 'READY', skillId, gain, text }];
  }
  return [];
}

function lastMastered(judged: readonly Judged[]): Judged[] {
  const mastered = judged.filter(({ code }) => code === 'READY').sort(byLastAttempt);
  const ofSection = (section: Section | null) =>
    mastered.find(({ view }) => view.placement.section === section) ?? [];
  return [...sections, null].flatMap(ofSection).sort(byLastAttempt);
}

const byLastAttempt = (a: Judged, b: Judged): number =>
  b.view.state.lastAttemptAt - a.view.state.lastAttemptAt;
