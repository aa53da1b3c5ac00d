import { type BktParameters, lostBelow, masteredAt } from '../base/bkt-parameters.js';
import { type Answer, dayOf } from '../base/common.js';
import { modelVersion } from '../base/model-version.js';
import { newAbilities } from './ability.js';
import { newActivity } from './activity.js';
import { newCalibration } from './calibration.js';
import type { Asked } from './course.js';
import { newMomentum } from './momentum.js';
import { newPace, newRapid } from './pace.js';
import { newPlateau, smoothedMastery } from './plateau.js';
import { type ItemTrace, newItemTrace, newLearnerTrace, newSkillTrace, type Traces } from './traces.js';
import { newTrend } from './trend.js';

/** Redis stores hashes up to this size compactly. */
const generationSize = 128;

/** Items of two generations are valid. A full generation starts the next. */
export const newItemWindow = { generation: 0, size: 0 };

export type ItemWindow = Readonly<typeof newItemWindow>;

export interface RememberedItem {
  readonly generation: number;
  readonly trace: ItemTrace;
}

export function recallItem(window: ItemWindow, item: RememberedItem | undefined): ItemTrace | null {
  return item === undefined || item.generation < window.generation - 1 ? null : item.trace;
}

export function openWindow(window: ItemWindow, item: RememberedItem | undefined): ItemWindow {
  if (item?.generation === window.generation) return window;
  if (window.size < generationSize) return { generation: window.generation, size: window.size + 1 };
  return { generation: window.generation + 1, size: 1 };
}

export const newLearner = {
  /** Increases with every commit, so readers detect changes. */
  version: 0,
  attempts: 0,
  abilityVersion: modelVersion as number,
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

/** Times are Unix milliseconds; days are UTC days since 1970. */
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
  readonly asked: Asked;
  readonly learner: LearnerState;
  readonly skill: SkillState;
  /** Null without an item, undefined if not stored. */
  readonly item: RememberedItem | null | undefined;
}

export const tracesOf = ({ learner, skill, item }: AnswerStates): Traces => ({
  learner: learner.trace,
  skill: skill.trace,
  item: item === null ? null : (recallItem(learner.items, item) ?? newItemTrace),
});

/** An item's difficulty counts one answer per day. Late answers do not count. */
export function isFirstOfDay({ learner, item }: AnswerStates, { occurredAt }: Answer): boolean {
  const trace = item === null ? null : recallItem(learner.items, item);
  return trace === null || dayOf(trace.at * 1000) < dayOf(occurredAt);
}

export const closesDay = ({ activity }: LearnerState, { occurredAt }: Pick<Answer, 'occurredAt'>): boolean =>
  activity.day >= 0 && dayOf(occurredAt) > activity.day;

export const isReached = (mastery: number, before: boolean): boolean =>
  mastery >= (before ? lostBelow : masteredAt.mastery);

/** Reaching the threshold once is weak evidence: most learners with accuracy .35 to .55 do. */
export const hasSteadyMastery = (of: Pick<SkillState, 'attempts' | 'plateau'>, mastery: number): boolean =>
  mastery >= masteredAt.mastery &&
  of.attempts >= masteredAt.attempts &&
  (smoothedMastery(of.plateau) ?? 0) >= masteredAt.smoothed;

export const isAccurate = (expected: number, { pSlip }: BktParameters): boolean =>
  expected >= Math.min(masteredAt.accuracy, 1 - pSlip);
