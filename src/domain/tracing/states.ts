import { type Answer, dayOf } from '../base/common.js';
import { type BktParameters, lostBelow, masteredAt, modelVersion } from '../base/params.js';
import { newAbilities } from './ability.js';
import { newCalibration } from './calibration.js';
import type { Asked } from './course.js';
import { newActivity, newMomentum } from './daily.js';
import { newPace, newRapid } from './pace.js';
import { newPlateau, smoothedMastery } from './plateau.js';
import { type ItemTrace, newItemTrace, newLearnerTrace, newSkillTrace, type Traces } from './traces.js';
import { newTrend } from './trend.js';

/** Redis keeps hashes of up to 128 small fields in its compact form. */
const generationSize = 128;

/** Two generations of remembered items: a full one begins the next, and the older is forgotten. */
export const newItemWindow = { generation: 0, size: 0 };

export type ItemWindow = Readonly<typeof newItemWindow>;

/** An item's figures, and the generation that they were written in. */
export interface RememberedItem<Trace> {
  readonly generation: number;
  readonly trace: Trace;
}

export function recallItem<Trace>(window: ItemWindow, item: RememberedItem<Trace> | undefined): Trace | null {
  return item === undefined || item.generation < window.generation - 1 ? null : item.trace;
}

/** The window after an answer on the item, which then belongs to its current generation. */
export function openWindow(window: ItemWindow, item: RememberedItem<unknown> | undefined): ItemWindow {
  if (item?.generation === window.generation) return window;
  if (window.size < generationSize) return { generation: window.generation, size: window.size + 1 };
  return { generation: window.generation + 1, size: 1 };
}

export const newLearner = {
  /** Grows with every commit: who reads a learner in several steps knows by it whether it is the same. */
  version: 0,
  attempts: 0,
  /** Version of the formulas by which the abilities were counted. */
  abilityVersion: modelVersion as number,
  abilities: newAbilities,
  /** Total score when the learner first had enough answers for one; null before. */
  baselineTotal: null as number | null,
  activity: newActivity,
  momentum: newMomentum,
  trace: newLearnerTrace,
  trend: newTrend,
  items: newItemWindow,
};

export type LearnerState = Readonly<typeof newLearner>;

/** One learner on one skill. Times are Unix milliseconds, days are UTC days since 1970. */
export const newSkill = ({ pInit }: BktParameters) => ({
  mastery: pInit,
  attempts: 0,
  correct: 0,
  lastAttemptAt: 0,
  /** Distinct days with a right answer: spaced practice decays more slowly. */
  correctDays: 0,
  lastCorrectDay: -1,
  plateau: newPlateau,
  pace: newPace,
  rapid: newRapid,
  calibration: newCalibration,
  trace: newSkillTrace,
  /** Mastery was at least `masteredAt.mastery` after an answer, and after none since below `lostBelow`. */
  reached: false,
  /** Mastery is steady after the last answer, and `isAccurate` held before a right answer since it became steady. */
  ready: false,
});

export type SkillState = Readonly<ReturnType<typeof newSkill>>;

export interface AnswerStates {
  readonly asked: Asked;
  readonly learner: LearnerState;
  readonly skill: SkillState;
  /** What is remembered of the item; null for an answer without an item, undefined for one that was never met. */
  readonly item: RememberedItem<ItemTrace> | null | undefined;
}

export const tracesOf = ({ learner, skill, item }: AnswerStates): Traces => ({
  learner: learner.trace,
  skill: skill.trace,
  item: item === null ? null : (recallItem(learner.items, item) ?? newItemTrace),
});

/** Whether it is the first answer on the item on its day: only those count for its difficulty. A late one never is. */
export function isFirstOfDay({ learner, item }: AnswerStates, { occurredAt }: Answer): boolean {
  const trace = item === null ? null : recallItem(learner.items, item);
  return trace === null || dayOf(trace.at * 1000) < dayOf(occurredAt);
}

/** Whether the answer is on a later day than any before: the last day with answers closes. */
export const closesDay = ({ activity }: LearnerState, { occurredAt }: Pick<Answer, 'occurredAt'>): boolean =>
  activity.day >= 0 && dayOf(occurredAt) > activity.day;

/** `reached` after an answer. @param mastery after it. @param before whether it was reached */
export const isReached = (mastery: number, before: boolean): boolean =>
  mastery >= (before ? lostBelow : masteredAt.mastery);

/** One crossing is weak evidence: of learners with accuracy .35 to .55 nearly all touch it. @param mastery effective */
export const hasSteadyMastery = (of: Pick<SkillState, 'attempts' | 'plateau'>, mastery: number): boolean =>
  mastery >= masteredAt.mastery &&
  of.attempts >= masteredAt.attempts &&
  (smoothedMastery(of.plateau) ?? 0) >= masteredAt.smoothed;

/** Whether enough answers are expected to be right to call the skill mastered. @param expected on an average question */
export const isAccurate = (expected: number, { pSlip }: BktParameters): boolean =>
  expected >= Math.min(masteredAt.accuracy, 1 - pSlip);
