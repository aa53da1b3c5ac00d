import type { Ability } from './ability.js';

export type Section = 'math' | 'rw';

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
}

/** What is kept of one learner beside the skills. */
export interface LearnerState {
  /** Grows with every commit: the learner's compare-and-set value. */
  readonly version: number;
  /** Counted answers so far: the sequence number of the last one. */
  readonly attempts: number;
  readonly math: Ability;
  readonly rw: Ability;
  /** Total score when the learner first had enough answers for one; null before. */
  readonly baselineTotal: number | null;
}

/** An answer as the models see it. */
export interface Answer {
  readonly isCorrect: boolean;
  readonly occurredAt: number;
  readonly questionDifficulty: number | null;
}
