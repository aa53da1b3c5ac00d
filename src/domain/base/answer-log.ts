/**
 * Answers in columns, as fits and evaluations read them: typed arrays that threads may share, sorted by learner
 * and, within a learner, in the order in which the answers were given.
 */
export interface AnswerLog {
  /** Answers of learner l are the places `starts[l]` to `starts[l + 1] - 1`; one entry more than learners. */
  readonly starts: Uint32Array;
  /** Index of the skill, 0 to skills - 1. */
  readonly skill: Uint32Array;
  /** Index of the item, 1 to items; 0 where none was reported. */
  readonly item: Uint32Array;
  /** 1 for a right answer, 0 for a wrong one. */
  readonly correct: Uint8Array;
  /** When it was given, Unix milliseconds; one same value everywhere in a log without times. */
  readonly at: Float64Array;
  /** Seconds spent, NaN where not reported. */
  readonly seconds: Float32Array;
  /** Question difficulty as supplied, in logits; NaN where not supplied. */
  readonly difficulty: Float32Array;
  readonly skills: number;
  readonly items: number;
}

/** Which learners take part, by their index. */
export type LearnerFilter = (learner: number) => boolean;
