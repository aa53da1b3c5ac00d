import { countDays, memoizeByObject, type Section, sections } from '../base/common.js';
import { goalConstants } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import { resolveSkillModel, type TenantModel } from '../catalogue/tenant-model.js';
import { isMastered, type SkillContext } from '../learner/expected-accuracy.js';
import { buildUnseenView, type SkillView } from '../learner/skill-view.js';
import { computeChangePoints } from '../prediction/term-texts.js';
import { findTrust, type LearnerAssessment } from '../score/assessment.js';
import { countDaysUntil } from '../score/goal.js';
import type { GoalOutlook } from '../score/learner-forecast.js';
import { computeCalibration } from '../tracing/calibration.js';
import type { SkillState } from '../tracing/learner-states.js';
import { isPlateau } from '../tracing/plateau.js';
import { computeRapidThreshold, isRapidFlagged } from '../tracing/response-times.js';
import { activityConstants } from '../tracing/tracing-constants.js';
import { computeGrowth, isFalling } from '../tracing/trend.js';
import { studyConstants } from './advice-constants.js';
import { adviceTexts, type GoalFigures, type Locale, type StudyTexts, withNames } from './advice-texts.js';
import { computeBiasPoints, countRecentAttempts, hasFaded, roundRapidThreshold } from './answer-advice.js';
import { computeFirstHour, computePracticeGain, computeReviewGain } from './practice-gain.js';

export interface StudyContext
  extends Pick<LearnerAssessment, 'learner' | 'views' | 'model' | 'now' | 'today' | 'measures'> {
  /** Default goals cause no advice. */
  readonly goal: GoalFigures & Pick<GoalOutlook, 'isSet' | 'onTrack'>;
  readonly locale: Locale;
}

export interface StudyAdvice {
  readonly code: keyof StudyTexts;
  readonly skillId: string | null;
  readonly text: string;
}

type SkillStateCode = Exclude<keyof StudyTexts, 'EXPLORE' | 'IDLE' | 'DECLINE' | 'NO_SECTION' | 'GOAL_GAP'>;

interface SkillAdvice {
  readonly code: SkillStateCode | 'EXPLORE';
  readonly skillId: string;
  /** Points per hour. */
  readonly gain: number;
  readonly text: () => string;
}

/** At most five: idle or decline, missing section, goal, then skills by gain (science notes 7). */
export function buildStudyAdvice(context: StudyContext): StudyAdvice[] {
  // A learner has each skill id once, so the comparison never returns 0.
  const views = [...context.views].sort((a, b) => (a.skillId < b.skillId ? -1 : 1));
  const assessed = views.map((view) => assessSkill(view, context));
  const bestUnseen = createUnseenFinder(context);
  const first = [...adviseOnTrend(context), ...adviseOnSection(context), ...adviseOnGoal(context)];
  const skills = [
    ...adviseSkills(context, assessed),
    ...sections.flatMap((section) => adviseExploration(context, section, bestUnseen)),
    ...adviseNextSkill(context, assessed, bestUnseen),
  ]
    .sort((a, b) => b.gain - a.gain || compareIds(a.skillId, b.skillId))
    .slice(0, studyConstants.maxEntries - first.length);
  return [...first, ...skills.map(({ code, skillId, text }) => ({ code, skillId, text: text() }))];
}

const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export function adviceUnavailableReason(context: StudyContext): string {
  const { views, locale } = context;
  const { none } = adviceTexts[locale];
  const least = studyConstants.weak.attempts;
  if (views.every(({ state }) => state.attempts < least)) return none.FEW(least);
  return views.every((view) => isMastered(view, context)) ? none.DONE() : none.STEADY();
}

function adviseOnTrend({ learner: { trend, activity }, views, today, locale }: StudyContext): StudyAdvice[] {
  const { study } = adviceTexts[locale];
  const idleDays = today - activity.day;
  if (views.length > 0 && idleDays >= activityConstants.days)
    return [{ code: 'IDLE', skillId: null, text: study.IDLE(idleDays) }];
  if (!isFalling(trend)) return [];
  return [{ code: 'DECLINE', skillId: null, text: study.DECLINE(computeChangePoints(trend)) }];
}

function adviseOnSection({ measures, locale }: StudyContext): StudyAdvice[] {
  const missing = sections.find((section) => measures[section].answers === 0);
  const measured = sections.find((section) => measures[section].answers > 0);
  if (missing === undefined || measured === undefined) return [];
  return [
    { code: 'NO_SECTION', skillId: null, text: adviceTexts[locale].study.NO_SECTION(missing, measured) },
  ];
}

/** Agrees with the status. Without the date if it is beyond a year, because the forecast ends there. */
function adviseOnGoal({ goal, today, locale }: StudyContext): StudyAdvice[] {
  const { isSet, onTrack, isLost, status, targetDate } = goal;
  if (!isSet || onTrack || status === 'on_track' || (status === 'reached' && !isLost)) return [];
  const isFar = (countDaysUntil(targetDate, today) ?? 0) > goalConstants.horizonDays;
  const text = adviceTexts[locale].study.GOAL_GAP(isFar ? { ...goal, targetDate: null } : goal);
  return [{ code: 'GOAL_GAP', skillId: null, text }];
}

export type SkillAssessment = ReturnType<typeof assessSkill>;

export function assessSkill(view: SkillView, context: SkillContext & Pick<StudyContext, 'measures'>) {
  const { measures } = context;
  const code = selectAdviceCode(view, context);
  const gain =
    code === 'REVIEW_DUE' ? computeReviewGain(view, measures) : computePracticeGain(view, measures);
  return { view, code, gain };
}

function selectAdviceCode(view: SkillView, context: SkillContext): SkillStateCode | null {
  const { state, mastery } = view;
  if (isPlateau(state.plateau)) return 'PLATEAU';
  const flag = computeCalibration(state.calibration)?.flag ?? null;
  if (flag === 'over') return 'OVERCONFIDENT';
  if (isRapidFlagged(state.rapid)) return 'RAPID';
  if (hasFaded(state.mastery, mastery)) return 'REVIEW_DUE';
  if (isSlow(state, mastery)) return 'SLOW';
  if (mastery < studyConstants.weak.mastery && state.attempts >= studyConstants.weak.attempts)
    return 'WEAK_SKILL';
  if (flag === 'under') return 'UNDERCONFIDENT';
  return isMastered(view, context) ? 'READY' : null;
}

function isSlow({ pace }: SkillState, mastery: number): boolean {
  const { slow } = studyConstants;
  const isAccurate = mastery >= slow.mastery && pace.accuracy >= slow.accuracy;
  return isAccurate && pace.timed >= slow.timed && pace.slowness >= slow.slowness;
}

const findHighestGain = (assessed: readonly SkillAssessment[]): SkillAssessment | null =>
  assessed.reduce<SkillAssessment | null>(
    (top, one) => (top === null || one.gain > top.gain ? one : top),
    null,
  );

function adviseSkills(context: StudyContext, assessed: readonly SkillAssessment[]): SkillAdvice[] {
  // A review needs few answers, so it does not compete with practice.
  const top = findHighestGain(assessed.filter(({ code }) => code !== 'REVIEW_DUE'));
  return assessed.flatMap((one) => {
    const { code, gain, view } = one;
    if (code === null || code === 'READY') return [];
    const { skillId } = view;
    const text = (skill: string): string => formatSkillAdvice(code, skill, one, one === top, context);
    return [{ code, skillId, gain, text: () => withNames(text, findSkillName(context, skillId)) }];
  });
}

export const findSkillName = ({ model }: Pick<StudyContext, 'model'>, skillId: string): string =>
  model.catalogue.entries.get(skillId)?.name ?? skillId;

function formatSkillAdvice(
  code: Exclude<SkillStateCode, 'READY'>,
  skill: string,
  { view: { state, model, placement }, gain }: SkillAssessment,
  isTop: boolean,
  context: StudyContext,
): string {
  const { study } = adviceTexts[context.locale];
  switch (code) {
    case 'PLATEAU':
      return study.PLATEAU(skill, countRecentAttempts(state.plateau));
    case 'OVERCONFIDENT':
      return study.OVERCONFIDENT(skill, computeBiasPoints(state.calibration));
    case 'RAPID':
      return study.RAPID(skill, roundRapidThreshold(computeRapidThreshold(model.times)));
    case 'REVIEW_DUE':
      return study.REVIEW_DUE(skill, countDays(state.lastAttemptAt, context.now));
    case 'WEAK_SKILL': {
      const { section } = placement;
      return study.WEAK_SKILL(skill, { section, isTop, points: roundPoints(gain, section, context) });
    }
    default:
      return study[code](skill);
  }
}

/** Points per hour; null if zero, or if the section has too few answers. */
function roundPoints(
  gain: number,
  skillSection: Section | null,
  { learner, model, measures }: StudyContext,
): number | null {
  const isKnown = sections.every(
    (section) =>
      computeSectionShare({ section: skillSection }, section) === 0 ||
      measures[section].answers >= studyConstants.pointsFrom,
  );
  const points = Math.round(gain * computeGrowth(learner.trend, learner.attempts, model.growth).practised);
  return isKnown && points > 0 ? points : null;
}

type UnseenFinder = (section: Section | null) => SkillAssessment | null;

function createUnseenFinder(context: StudyContext): UnseenFinder {
  const { views, model, now } = context;
  let seen: ReadonlySet<string> | null = null;
  return (section) => {
    const known = seen ?? new Set(views.map((view) => view.skillId));
    seen = known;
    const best = rankCatalogueSkills(model)[section ?? 'none'].find((skillId) => !known.has(skillId));
    return best === undefined ? null : assessSkill(buildUnseenView(best, model, now), context);
  };
}

/** Cached, because the catalogue may be large. */
const rankCatalogueSkills = memoizeByObject((model: TenantModel): Record<Section | 'none', string[]> => {
  const ranked = Array.from(model.catalogue.entries, ([skillId, { section, weight }]) => {
    const skill = resolveSkillModel(model, skillId);
    return {
      skillId,
      section,
      value: weight * findTrust({ model: skill }) * computeFirstHour(skill.parameters),
    };
  }).sort((a, b) => b.value - a.value || compareIds(a.skillId, b.skillId));
  const idsOf = (of: Section | null) =>
    ranked.flatMap(({ skillId, section }) => (section === of ? [skillId] : []));
  return { math: idsOf('math'), rw: idsOf('rw'), none: idsOf(null) };
});

function adviseExploration(context: StudyContext, section: Section, bestUnseen: UnseenFinder): SkillAdvice[] {
  const { seenWeight, registeredWeight } = context.measures[section];
  const unseen = seenWeight / registeredWeight >= studyConstants.coverage ? null : bestUnseen(section);
  if (unseen === null) return [];
  const { view, gain } = unseen;
  const { skillId } = view;
  const text = (skill: string): string => adviceTexts[context.locale].study.EXPLORE(skill, section);
  return [{ code: 'EXPLORE', skillId, gain, text: () => withNames(text, findSkillName(context, skillId)) }];
}

/** Recommends the next skill after the most recently practised mastered skill. */
function adviseNextSkill(
  context: StudyContext,
  assessed: readonly SkillAssessment[],
  bestUnseen: UnseenFinder,
): SkillAdvice[] {
  for (const { view, gain } of selectLastMastered(assessed)) {
    const { section } = view.placement;
    const isOpen = ({ view }: SkillAssessment) =>
      view.placement.section === section && !isMastered(view, context);
    const others = assessed.filter(isOpen);
    const unseen = bestUnseen(section);
    const next = findHighestGain(unseen === null ? others : [unseen, ...others])?.view.skillId;
    if (next === undefined) continue;
    const { skillId } = view;
    const { READY } = adviceTexts[context.locale].study;
    const text = () => withNames(READY, findSkillName(context, skillId), findSkillName(context, next));
    return [{ code: 'READY', skillId, gain, text }];
  }
  return [];
}

function selectLastMastered(assessed: readonly SkillAssessment[]): SkillAssessment[] {
  const mastered = assessed.filter(({ code }) => code === 'READY').sort(compareLastAttempt);
  const ofSection = (section: Section | null) =>
    mastered.find(({ view }) => view.placement.section === section) ?? [];
  return [...sections, null].flatMap(ofSection).sort(compareLastAttempt);
}

const compareLastAttempt = (a: SkillAssessment, b: SkillAssessment): number =>
  b.view.state.lastAttemptAt - a.view.state.lastAttemptAt;
