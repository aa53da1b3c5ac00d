/** Advice that comes with a forecast: what to do next, the most useful first. */

import { activityModel, goalModel, studyModel } from '../base/params.js';
import { type PerSection, type Section, sections } from '../base/types.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import { daysUntil, isOver } from '../score/goal.js';
import type { SectionMeasure } from '../score/section-measure.js';
import { isMastered } from '../tracing/states.js';
import { wholeDays } from './advice-rules.js';
import { type GoalFigures, type Locale, type StudyTexts, texts } from './advice-texts.js';
import type { SkillCode, SkillsContext } from './study-context.js';
import { adviseSkills } from './study-skills.js';
import { compareIds } from './unseen-skills.js';

export interface StudyAdvice {
  readonly code: SkillCode | 'NO_SECTION' | 'GOAL_GAP';
  /** Null where it is about no single skill. */
  readonly skillId: string | null;
  /** At most 200 characters. */
  readonly text: string;
}

/** Where the learner stands against the goal. */
export interface StudyGoal extends GoalFigures {
  /** False for a default goal, which nobody is urged to. */
  readonly isSet: boolean;
  readonly onTrack: boolean;
}

export interface StudyContext {
  /** All the learner's skills as they are now, in any order. */
  readonly views: readonly SkillView[];
  /** With the tenant's catalogue. */
  readonly model: TenantModel;
  readonly measures: PerSection<SectionMeasure>;
  /** Unix milliseconds. */
  readonly now: number;
  readonly goal: StudyGoal;
  readonly locale: Locale;
}

/**
 * At most five pieces of advice, one for each skill at most: a section without answers, a goal out of reach, then by
 * expected gain per hour, ties by skill id. The same for the same states, in whatever order they are read.
 * Source: science notes 7; constants in params.ts.
 */
export function studyAdvice(asked: StudyContext): StudyAdvice[] {
  const { model, measures, now, goal } = asked;
  const context: SkillsContext = { views: [...asked.views].sort(byId), measures, model, now };
  const { study } = texts[asked.locale];
  const first = [...missingSection(context, study), ...goalGap(goal, now, study)];
  const skills = adviseSkills(context)
    .sort((a, b) => b.gain - a.gain || compareIds(a.skillId, b.skillId))
    .slice(0, studyModel.maxEntries - first.length);
  return [...first, ...skills.map(({ code, skillId, text }) => ({ code, skillId, text: text(study) }))];
}

/** Why there is no advice to give. */
export function noAdviceReason({ views, now, locale }: StudyContext): string {
  const { none } = texts[locale];
  const idleDays = wholeDays(
    views.reduce((last, { state }) => Math.max(last, state.lastAttemptAt), 0),
    now,
  );
  if (idleDays >= activityModel.days) return none.IDLE(idleDays);
  if (views.every(({ state }) => state.attempts < studyModel.weak.attempts))
    return none.FEW(studyModel.weak.attempts);
  return views.every(({ state, mastery }) => isMastered(state, mastery)) ? none.DONE() : none.STEADY();
}

/** A learner has each skill once, so no two ids are equal; comparing them is most of what sorting costs. */
const byId = (a: SkillView, b: SkillView): number => (a.skillId < b.skillId ? -1 : 1);

/** A section that is told from the other one alone. */
function missingSection(context: SkillsContext, study: StudyTexts): StudyAdvice[] {
  const missing = sections.find((section) => !isMeasured(context, section));
  const measured = sections.find((section) => isMeasured(context, section));
  if (missing === undefined || measured === undefined) return [];
  return [{ code: 'NO_SECTION', skillId: null, text: study.NO_SECTION(missing, measured) }];
}

const isMeasured = ({ measures }: SkillsContext, section: Section): boolean => measures[section].answers > 0;

/** Nothing is said of a date that has passed; one beyond a year is beyond the forecast. */
function goalGap(goal: StudyGoal, now: number, study: StudyTexts): StudyAdvice[] {
  const { isSet, onTrack, targetDate } = goal;
  if (!isSet || onTrack || isOver(targetDate, now)) return [];
  const isFar = (daysUntil(targetDate, now) ?? 0) > goalModel.horizonDays;
  const text = study.GOAL_GAP(isFar ? { ...goal, targetDate: null } : goal);
  return [{ code: 'GOAL_GAP', skillId: null, text }];
}
