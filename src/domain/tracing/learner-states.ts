import { type BktParameters, masteryLossThreshold, masteryThresholds } from '../base/bkt-parameters.js';
import { getCalendar, utc } from '../base/calendar.js';
import { mapNonEmpty, type NonEmpty } from '../base/common.js';
import { formulaVersion } from '../base/formula-version.js';
import { newAbilities } from './ability.js';
import { newActivity } from './activity.js';
import { newCalibration } from './calibration.js';
import type { QuestionKeys } from './course.js';
import { newMomentum } from './momentum.js';
import { computeSmoothedMastery, newPlateau } from './plateau.js';
import { newPace, newRapid } from './response-times.js';
import { type ItemTrace, newItemTrace, newLearnerTrace, newSkillTrace, type Traces } from './traces.js';
import { newTrend } from './trend.js';

/** Redis stores hashes up to this size compactly. */
const generationSize = 128;

/** Items of two generations are valid. A full generation starts the next. */
export const newItemWindow = { generation: 0, size: 0 };

export type ItemWindow = Readonly<typeof newItemWindow>;

export interface ItemRecord {
  readonly generation: number;
  readonly trace: ItemTrace;
}

export function findLiveTrace(window: ItemWindow, item: ItemRecord | undefined): ItemTrace | null {
  return item === undefined || item.generation < window.generation - 1 ? null : item.trace;
}

export function advanceWindow(window: ItemWindow, item: ItemRecord | undefined): ItemWindow {
  if (item?.generation === window.generation) return window;
  if (window.size < generationSize) return { generation: window.generation, size: window.size + 1 };
  return { generation: window.generation + 1, size: 1 };
}

export const newLearner = {
  /** Increases with every commit, so readers detect changes. */
  version: 0,
  attempts: 0,
  abilityVersion: formulaVersion as number,
  /** IANA name. Days are days of this zone, numbered since 1970. */
  timeZone: utc,
  abilities: newAbilities,
  /** Null before the baseline. */
  baselineTotal: null as number | null,
  activity: newActivity,
  momentum: newMomentum,
  trace: newLearnerTrace,
  trend: newTrend,
  items: newItemWindow,
};

export type LearnerState = Readonly<typeof newLearner>;

/** Times are Unix milliseconds; days are days in the learner's time zone, numbered since 1970. */
export const newSkill = ({ pInit }: BktParameters) => ({
  mastery: pInit,
  attempts: 0,
  correct: 0,
  lastAttemptAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
  plateau: newPlateau,
  pace: newPace,
  rapid: newRapid,
  calibration: newCalibration,
  trace: newSkillTrace,
  /** True from `masteryThresholds.mastery` until mastery is below `masteryLossThreshold`. */
  reached: false,
  /** Mastery is steady, and a correct answer came with sufficient accuracy. */
  ready: false,
});

export type SkillState = Readonly<ReturnType<typeof newSkill>>;

export interface AnswerStates {
  readonly keys: QuestionKeys;
  readonly learner: LearnerState;
  /** Of the question, in its order. */
  readonly skills: NonEmpty<SkillState>;
  /** Null without an item, undefined if not stored. */
  readonly item: ItemRecord | null | undefined;
}

export const selectTraces = ({ learner, skills, item }: AnswerStates): Traces => ({
  learner: learner.trace,
  skills: mapNonEmpty(skills, ({ trace }) => trace),
  item: item === null ? null : (findLiveTrace(learner.items, item) ?? newItemTrace),
});

/** An item's difficulty counts one answer per day. Late answers do not count. */
export function isFirstOfDay({ learner, item }: AnswerStates, localDay: number): boolean {
  const trace = item === null ? null : findLiveTrace(learner.items, item);
  return trace === null || getCalendar(learner.timeZone).toDay(trace.at * 1000) < localDay;
}

export const startsNewDay = ({ activity }: LearnerState, localDay: number): boolean =>
  activity.day >= 0 && localDay > activity.day;

/** When the learner's last active day ends. @returns Unix milliseconds */
export const computeDayEnd = ({ activity, timeZone }: Pick<LearnerState, 'activity' | 'timeZone'>): number =>
  getCalendar(timeZone).startOfDay(activity.day + 1);

export const isMasteryReached = (mastery: number, wasReached: boolean): boolean =>
  mastery >= (wasReached ? masteryLossThreshold : masteryThresholds.mastery);

/** Reaching the threshold once is weak evidence: most learners with accuracy .35 to .55 do. */
export const hasSteadyMastery = (skill: Pick<SkillState, 'attempts' | 'plateau'>, mastery: number): boolean =>
  mastery >= masteryThresholds.mastery &&
  skill.attempts >= masteryThresholds.attempts &&
  (computeSmoothedMastery(skill.plateau) ?? 0) >= masteryThresholds.smoothed;

export const isAccuracySufficient = (expected: number, { pSlip }: BktParameters): boolean =>
  expected >= Math.min(masteryThresholds.accuracy, 1 - pSlip);
