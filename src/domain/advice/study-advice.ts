/** Advice that comes with a forecast: what to do next, the most useful first. */
import { onceFor, type Section, sections, wholeDays } from '../base/common.js';
import { activityModel, goalModel, studyModel } from '../base/params.js';
import { type Placement, shareOf } from '../catalogue/catalogue.js';
import { type SkillModel, skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import { daysUntil, type GoalOutlook, isOver } from '../score/goal.js';
import { type Standing, trustOf } from '../score/standing.js';
import { calibration } from '../tracing/calibration.js';
import { efficiencyIndex, rapidFlag, rapidThreshold } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import { isMastered, type SkillState } from '../tracing/states.js';
import { biasPoints, hasFaded, rapidFigure, recentAttempts } from './answer-advice.js';
import { firstHour, firstPracticeGain, practiceGain, reviewGain } from './gain.js';
import { type GoalFigures, type Locale, type StudyTexts, texts, withNames } from './texts.js';

export interface StudyContext extends Pick<Standing, 'views' | 'model' | 'now' | 'measures'> {
  /** Nobody is urged to a default goal. */
  readonly goal: GoalFigures & Pick<GoalOutlook, 'isSet' | 'onTrack'>;
  readonly locale: Locale;
}

export interface StudyAdvice {
  readonly code: SkillAdvice['code'] | 'NO_SECTION' | 'GOAL_GAP';
  /** Null where it is about no single skill. */
  readonly skillId: string | null;
  /** At most 200 characters. */
  readonly text: string;
}

type StateCode = Exclude<keyof StudyTexts, 'EXPLORE' | 'NO_SECTION' | 'GOAL_GAP'>;

interface SkillAdvice {
  readonly code: StateCode | 'EXPLORE';
  readonly skillId: string;
  /** Points per hour. */
  readonly gain: number;
  /** Made for the advice that is given only. */
  readonly text: () => string;
}

/**
 * At most five pieces of advice, at most one a skill: a section without answers, a goal out of reach, then by expected
 * gain per hour, ties by skill id: the same in whatever order the views were read. Source: science notes 7.
 */
export function studyAdvice(context: StudyContext): StudyAdvice[] {
  // A learner has each skill once, so no two ids are equal; comparing them is most of what sorting costs.
  const views = [...context.views].sort((a, b) => (a.skillId < b.skillId ? -1 : 1));
  const { study } = texts[context.locale];
  const judged = views.map((view) => judge(view, context));
  const first = [...missingSection(context, study), ...goalGap(context, study)];
  const skills = [...adviseSkills(context, judged, study), ...adviseNext(context, judged, study)]
    .sort((a, b) => b.gain - a.gain || compareIds(a.skillId, b.skillId))
    .slice(0, studyModel.maxEntries - first.length);
  return [...first, ...skills.map(({ code, skillId, text }) => ({ code, skillId, text: text() }))];
}

/** An order of ids that is the same everywhere. */
const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Why there is no advice to give. */
export function noAdviceReason({ views, now, locale }: StudyContext): string {
  const { none } = texts[locale];
  const last = views.reduce((latest, { state }) => Math.max(latest, state.lastAttemptAt), 0);
  const idleDays = wholeDays(last, now);
  const least = studyModel.weak.attempts;
  if (idleDays >= activityModel.days) return none.IDLE(idleDays);
  if (views.every(({ state }) => state.attempts < least)) return none.FEW(least);
  return views.every(({ state, mastery }) => isMastered(state, mastery)) ? none.DONE() : none.STEADY();
}

/** A section whose estimate rests on the other one alone. */
function missingSection({ measures }: StudyContext, study: StudyTexts): StudyAdvice[] {
  const missing = sections.find((section) => measures[section].answers === 0);
  const measured = sections.find((section) => measures[section].answers > 0);
  if (missing === undefined || measured === undefined) return [];
  return [{ code: 'NO_SECTION', skillId: null, text: study.NO_SECTION(missing, measured) }];
}

/** None for a date that has passed; a date beyond a year is beyond the forecast. */
function goalGap({ goal, now }: StudyContext, study: StudyTexts): StudyAdvice[] {
  const { isSet, onTrack, targetDate } = goal;
  if (!isSet || onTrack || isOver(targetDate, now)) return [];
  const isFar = (daysUntil(targetDate, now) ?? 0) > goalModel.horizonDays;
  const text = study.GOAL_GAP(isFar ? { ...goal, targetDate: null } : goal);
  return [{ code: 'GOAL_GAP', skillId: null, text }];
}

/** A skill of the learner, what its state calls for, and the points per hour of doing so. */
type Judged = ReturnType<typeof judge>;

function judge(view: SkillView, { measures }: StudyContext) {
  const code = codeOf(view.state, view.mastery);
  const gain = code === 'REVIEW_DUE' ? reviewGain(view, measures) : practiceGain(view, measures);
  return { view, code, gain };
}

/** What a skill's state calls for: of several the most urgent. @param mastery the effective one now */
function codeOf(state: SkillState, mastery: number): StateCode | null {
  if (isPlateau(state.plateau)) return 'PLATEAU';
  const flag = calibration(state.calibration)?.flag ?? null;
  if (flag === 'over') return 'OVERCONFIDENT';
  if (rapidFlag(state.rapid)) return 'RAPID';
  if (hasFaded(state.mastery, mastery)) return 'REVIEW_DUE';
  if (isSlow(state, mastery)) return 'SLOW';
  if (mastery < studyModel.weak.mastery && state.attempts >= studyModel.weak.attempts) return 'WEAK_SKILL';
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

/** Advice on the judged skills, but for mastered ones, which call for another skill. */
function adviseSkills(context: StudyContext, judged: readonly Judged[], study: StudyTexts): SkillAdvice[] {
  // Of several the first. A review is no practice: a few answers bring back what was there.
  const top = judged.reduce<Judged | null>(
    (top, one) => (one.code !== 'REVIEW_DUE' && one.gain > (top?.gain ?? 0) ? one : top),
    null,
  );
  return judged.flatMap((one) => {
    const { code, gain, view } = one;
    if (code === null || code === 'READY') return [];
    const text = (skill: string): string => stateText(study, code, skill, one, one === top, context);
    const { skillId } = view;
    return [{ code, skillId, gain, text: () => withNames(text, nameOf(context, skillId)) }];
  });
}

/** What people call a skill. */
const nameOf = ({ model }: StudyContext, skillId: string): string =>
  model.catalogue.entries.get(skillId)?.name ?? skillId;

function stateText(
  texts: StudyTexts,
  code: Exclude<StateCode, 'READY'>,
  skill: string,
  { view: { state, model, placement }, gain }: Judged,
  isTop: boolean,
  context: StudyContext,
): string {
  switch (code) {
    case 'PLATEAU':
      return texts.PLATEAU(skill, recentAttempts(state.plateau));
    case 'OVERCONFIDENT':
      return texts.OVERCONFIDENT(skill, biasPoints(state.calibration));
    case 'RAPID':
      return texts.RAPID(skill, rapidFigure(rapidThreshold(model.times)));
    case 'REVIEW_DUE':
      return texts.REVIEW_DUE(skill, wholeDays(state.lastAttemptAt, context.now));
    case 'WEAK_SKILL': {
      const { section } = placement;
      return texts.WEAK_SKILL(skill, { section, isTop, points: pointsOf(gain, section, context) });
    }
    default:
      return texts[code](skill);
  }
}

/** Whole points per hour; null where there are none, or the section has too few answers. */
function pointsOf(gain: number, of: Section | null, { measures }: StudyContext): number | null {
  const isKnown = sections.every(
    (section) =>
      shareOf({ section: of }, section) === 0 || measures[section].answers >= studyModel.pointsFrom,
  );
  const points = Math.round(gain);
  return isKnown && points > 0 ? points : null;
}

/** What to go on to: skills without answers, and what comes after a mastered one. @param judged by skill id */
function adviseNext(context: StudyContext, judged: readonly Judged[], study: StudyTexts): SkillAdvice[] {
  const bestUnseen = unseenBy(context);
  const unexplored = sections.map((section) => explore(context, section, bestUnseen, study));
  return [...unexplored, ready(context, judged, bestUnseen, study)].filter((advice) => advice !== null);
}

/** A skill that the tenant has set and the learner has not answered. */
interface UnseenSkill {
  readonly skillId: string;
  readonly placement: Placement;
  readonly model: SkillModel;
  /** In proportion to the gain of a first hour. */
  readonly value: number;
}

/** The most valuable skill of the section without an answer of the learner; null where there is none. */
type BestUnseen = (section: Section | null) => UnseenSkill | null;

function unseenBy({ views, model }: StudyContext): BestUnseen {
  let seen: ReadonlySet<string> | null = null; // seldom asked for
  const isUnseen = ({ skillId }: UnseenSkill): boolean => {
    seen ??= new Set(views.map((view) => view.skillId));
    return !seen.has(skillId);
  };
  return (section) => rankingOf(model)[section ?? 'none'].find(isUnseen) ?? null;
}

/** The catalogue's skills by section, the most valuable first: ranked once, for a catalogue may be large. */
const rankingOf = onceFor((model: TenantModel) => {
  const ranking: Record<Section | 'none', UnseenSkill[]> = { math: [], rw: [], none: [] };
  for (const [skillId, placement] of model.catalogue.entries) {
    const skill = skillModelOf(model, skillId);
    const value = placement.weight * trustOf({ model: skill }) * firstHour(skill.parameters);
    ranking[placement.section ?? 'none'].push({ skillId, placement, model: skill, value });
  }
  for (const skills of Object.values(ranking)) {
    skills.sort((a, b) => b.value - a.value || compareIds(a.skillId, b.skillId));
  }
  return ranking;
});

/** To the most valuable skill without an answer, where less than half of the section is covered. */
function explore(
  context: StudyContext,
  section: Section,
  bestUnseen: BestUnseen,
  study: StudyTexts,
): SkillAdvice | null {
  const { seenWeight, knownWeight } = context.measures[section];
  const unseen = seenWeight / knownWeight >= studyModel.coverage ? null : bestUnseen(section);
  if (unseen === null) return null;
  const { skillId, placement, model } = unseen;
  return {
    code: 'EXPLORE',
    skillId,
    gain: firstPracticeGain(placement, model, context.measures),
    text: () => withNames((skill) => study.EXPLORE(skill, section), nameOf(context, skillId)),
  };
}

/** The mastered skill that was practised last of those with another to move on to; null where there is none. */
function ready(
  context: StudyContext,
  judged: readonly Judged[],
  bestUnseen: BestUnseen,
  study: StudyTexts,
): SkillAdvice | null {
  for (const { view, gain } of lastMastered(judged)) {
    const next = nextSkill(context, judged, view.placement.section, bestUnseen);
    if (next === null) continue;
    const { skillId } = view;
    const text = () => withNames(study.READY, nameOf(context, skillId), nameOf(context, next));
    return { code: 'READY', skillId, gain, text };
  }
  return null;
}

/** The mastered skill of each section that was practised last, of several the first by id; the latest first. */
function lastMastered(judged: readonly Judged[]): Judged[] {
  const mastered = judged.filter(({ code }) => code === 'READY').sort(byLastAttempt);
  const ofSection = (section: Section | null) =>
    mastered.find(({ view }) => view.placement.section === section) ?? [];
  return [...sections, null].flatMap(ofSection).sort(byLastAttempt);
}

const byLastAttempt = (a: Judged, b: Judged): number =>
  b.view.state.lastAttemptAt - a.view.state.lastAttemptAt;

/** The skill of the section with the highest gain that is not mastered, answered or not; null where there is none. */
function nextSkill(
  { measures }: StudyContext,
  judged: readonly Judged[],
  section: Section | null,
  bestUnseen: BestUnseen,
): string | null {
  const unseen = bestUnseen(section);
  let next = unseen && {
    skillId: unseen.skillId,
    gain: firstPracticeGain(unseen.placement, unseen.model, measures),
  };
  for (const { view, gain } of judged) {
    if (view.placement.section !== section || isMastered(view.state, view.mastery)) continue;
    if (next === null || gain > next.gain) next = { skillId: view.skillId, gain };
  }
  return next?.skillId ?? null;
}
