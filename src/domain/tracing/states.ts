import { dayOf } from '../base/days.js';
import { type BktParameters, masteredAt, modelVersion } from '../base/params.js';
import type { Answer } from '../base/types.js';
import { type Ability, newAbility } from './ability.js';
import { type Activity, newActivity } from './activity.js';
import { type CalibrationState, newCalibration } from './calibration.js';
import { type ItemWindow, newItemWindow, type RememberedItem, recallItem } from './item-window.js';
import { type MomentumState, newMomentum } from './momentum.js';
import { newPace, type PaceState } from './pace.js';
import { newPlateau, type PlateauState, smoothedMastery } from './plateau.js';
import { newRapid, type RapidState } from './rapid.js';
import {
  type ItemTrace,
  type LearnerTrace,
  newItemTrace,
  newLearnerTrace,
  newSkillTrace,
  type SkillTrace,
  type Traces,
} from './traces.js';

/**
 * What is kept of one learner on one skill: a fixed number of figures, whatever the number of attempts.
 * Times are Unix milliseconds, days are UTC days since 1970.
 */
export interface SkillState {
  /** Probability that the skill is mastered, right after the last attempt, unrounded. */
  readonly mastery: number;
  readonly attempts: number;
  readonly correct: number;
  readonly lastAttemptAt: number;
  /** Distinct days with a right answer: spaced practice decays more slowly. */
  readonly correctDays: number;
  readonly lastCorrectDay: number;
  readonly plateau: PlateauState;
  readonly pace: PaceState;
  readonly rapid: RapidState;
  readonly calibration: CalibrationState;
  /** What p_correct is predicted from, beside mastery and counts. */
  readonly trace: SkillTrace;
}

/** What is kept of one learner beside the skills. */
export interface LearnerState {
  /** Grows with every commit: who reads a learner in several steps knows by it whether it is the same. */
  readonly version: number;
  /** Counted answers so far: the sequence number of the last one. */
  readonly attempts: number;
  /** Version of the formulas (`modelVersion`) by which the abilities were counted. */
  readonly abilityVersion: number;
  readonly math: Ability;
  readonly rw: Ability;
  /** Total score when the learner first had enough answers for one; null before. */
  readonly baselineTotal: number | null;
  readonly activity: Activity;
  readonly momentum: MomentumState;
  /** What p_correct is predicted from. */
  readonly trace: LearnerTrace;
  /** Which items the learner is remembered by. */
  readonly items: ItemWindow;
}

export const newLearner: LearnerState = {
  version: 0,
  attempts: 0,
  abilityVersion: modelVersion,
  math: newAbility,
  rw: newAbility,
  baselineTotal: null,
  activity: newActivity,
  momentum: newMomentum,
  trace: newLearnerTrace,
  items: newItemWindow,
};

export const newSkill = ({ pInit }: BktParameters): SkillState => ({
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
});

/** A learner's states that one answer reads and writes. */
export interface AnswerStates {
  readonly learner: LearnerState;
  readonly skill: SkillState;
  /** What is remembered of the item; null for an answer without an item, undefined for one that was never met. */
  readonly item: RememberedItem<ItemTrace> | null | undefined;
}

/** The traces that an answer is predicted from. */
export const tracesOf = ({ learner, skill, item }: AnswerStates): Traces => ({
  learner: learner.trace,
  skill: skill.trace,
  item: item === null ? null : (recallItem(learner.items, item) ?? newItemTrace),
});

/**
 * Whether this is the learner's first answer on the item on its day: only those count for the item's difficulty. A
 * late answer never is, or answers dated back would count without end.
 */
export function isFirstOfDay({ learner, item }: AnswerStates, { occurredAt }: Answer): boolean {
  const trace = item === null ? null : recallItem(learner.items, item);
  return trace === null || dayOf(trace.at * 1000) < dayOf(occurredAt);
}

/** Whether the answer is the learner's first on a later day than any before: the last day with answers closes. */
export const closesDay = ({ activity }: LearnerState, { occurredAt }: Pick<Answer, 'occurredAt'>): boolean =>
  activity.day >= 0 && dayOf(occurredAt) > activity.day;

/**
 * Whether the skill may be called mastered. One crossing of the threshold is weak evidence: of learners with constant
 * accuracy .35 to .55 nearly all touch it once within 40 attempts (science 1.1, simulated).
 *
 * @param mastery the effective one now
 */
export function isMastered(skill: SkillState, mastery: number): boolean {
  return (
    mastery >= masteredAt.mastery &&
    skill.attempts >= masteredAt.attempts &&
    (smoothedMastery(skill.plateau) ?? 0) >= masteredAt.smoothed
  );
}
