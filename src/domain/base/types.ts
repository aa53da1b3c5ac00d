import type { Activity } from '../practice/activity.js';
import type { CalibrationState } from '../practice/calibration.js';
import type { PaceState } from '../practice/efficiency.js';
import type { MomentumState } from '../practice/momentum.js';
import type { PlateauState } from '../practice/plateau.js';
import type { LearnerTrace, SkillTrace } from '../prediction/traces.js';
import type { Ability } from '../score/ability.js';
import type { ItemWindow } from '../tracing/item-window.js';
import type { RapidState } from '../tracing/rapid.js';

export const sections = ['math', 'rw'] as const;
export type Section = (typeof sections)[number];

/** A value for each section. */
export type PerSection<T> = Readonly<Record<Section, T>>;

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
  /** Version of the formulas (`modelVersion`) by which the abilities were counted; 0: before versions were noted. */
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

/** An answer as the models see it. */
export interface Answer {
  readonly isCorrect: boolean;
  /** Unix milliseconds. */
  readonly occurredAt: number;
  /** Logits, -3 to 3; null: not supplied. */
  readonly questionDifficulty: number | null;
  /** 0 to 86400; null: not reported. */
  readonly timeSpentSeconds: number | null;
  /** 1 to 5; null: not sent. */
  readonly confidenceScore: number | null;
}
