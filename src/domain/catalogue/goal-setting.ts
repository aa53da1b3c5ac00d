/** What a learner has set as a goal. */
export interface GoalSetting {
  /** Total score, 400 to 1600 in tens. */
  readonly targetScore: number;
  /** YYYY-MM-DD in UTC, perhaps passed by now; null: no date. */
  readonly targetDate: string | null;
}

/** A goal as it is kept. */
export interface StoredGoal extends GoalSetting {
  /** Unix milliseconds; grows with every change of the learner's goal. */
  readonly updatedAt: number;
}
