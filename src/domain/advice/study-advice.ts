/** Advice that comes with a forecast: what to do next, the most useful first. */

import { wholeDays } from '../base/days.js';
import { activityModel, goalModel, studyModel } from '../base/params.js';
import { sections } from '../base/types.js';
import { daysUntil, type GoalOutlook, isOver } from '../score/goal.js';
import { isMastered } from '../tracing/states.js';
import { adviseNext, compareIds } from './next-skill.js';
import { adviseSkills, judge, type SkillAdvice, type SkillsContext } from './skill-advice.js';
import { type GoalFigures, type Locale, type StudyTexts, texts } from './texts.js';

export interface StudyAdvice {
  readonly code: SkillAdvice['code'] | 'NO_SECTION' | 'GOAL_GAP';
  /** Null where it is about no single skill. */
  readonly skillId: string | null;
  /** At most 200 characters. */
  readonly text: string;
}

/** Nobody is urged to a default goal. */
type StudyGoal = GoalFigures & Pick<GoalOutlook, 'isSet' | 'onTrack'>;

/** Here the views are in any order. */
export interface StudyContext extends SkillsContext {
  readonly goal: StudyGoal;
  readonly locale: Locale;
}

/**
 * At most five pieces of advice, at most one a skill: a section without answers, a goal out of reach, then by expected
 * gain per hour, ties by skill id. The same for the same states, in whatever order they were read.
 * Source: science notes 7; constants in params.ts.
 */
export function studyAdvice({
  goal,
  locale,
  views: unsorted,
  model,
  measures,
  now,
}: StudyContext): StudyAdvice[] {
  // A learner has each skill once, so no two ids are equal; comparing them is most of what sorting costs.
  const views = [...unsorted].sort((a, b) => (a.skillId < b.skillId ? -1 : 1));
  const context = { views, model, measures, now };
  const { study } = texts[locale];
  const judged = views.map((view) => judge(view, measures));
  const first = [...missingSection(context, study), ...goalGap(goal, now, study)];
  const skills = [...adviseSkills(context, judged), ...adviseNext(context, judged)]
    .sort((a, b) => b.gain - a.gain || compareIds(a.skillId, b.skillId))
    .slice(0, studyModel.maxEntries - first.length);
  return [...first, ...skills.map(({ code, skillId, text }) => ({ code, skillId, text: text(study) }))];
}

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
function missingSection({ measures }: SkillsContext, study: StudyTexts): StudyAdvice[] {
  const missing = sections.find((section) => measures[section].answers === 0);
  const measured = sections.find((section) => measures[section].answers > 0);
  if (missing === undefined || measured === undefined) return [];
  return [{ code: 'NO_SECTION', skillId: null, text: study.NO_SECTION(missing, measured) }];
}

/** None for a date that has passed; a date beyond a year is beyond the forecast. */
function goalGap(goal: StudyGoal, now: number, study: StudyTexts): StudyAdvice[] {
  const { isSet, onTrack, targetDate } = goal;
  if (!isSet || onTrack || isOver(targetDate, now)) return [];
  const isFar = (daysUntil(targetDate, now) ?? 0) > goalModel.horizonDays;
  const text = study.GOAL_GAP(isFar ? { ...goal, targetDate: null } : goal);
  return [{ code: 'GOAL_GAP', skillId: null, text }];
}
