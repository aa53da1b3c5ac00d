/** What a fit tells about itself; published with the model. */

/** Mean log loss on the same held-out answers, with what was in force and with what was fitted; null: no answers. */
export interface Comparison {
  readonly answers: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
}

export interface SkillReport extends Comparison {
  readonly skillId: string;
  /** Whether the fit of this version brought the skill's parameters. */
  readonly published: boolean;
  /** Why not; empty where they were. */
  readonly reason: string;
}

/** On the held-out learners' moments, with what was in force and with what was fitted; null: not measured. */
export interface AccuracyReport {
  readonly cases: number;
  readonly learners: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
  /** Share of cases inside the 80 % interval. */
  readonly oldCoverage80: number | null;
  readonly newCoverage80: number | null;
  readonly published: boolean;
  /** Why not; empty where they were. */
  readonly reason: string;
}

export interface FitReport {
  /** Read for this fit. */
  readonly answers: number;
  readonly learners: number;
  /** One learner in so many was read. */
  readonly sampledOneIn: number;
  /** Learners that the fit did not see, by whose answers it was judged. */
  readonly heldOutLearners: number;
  readonly skills: readonly SkillReport[];
  /** BKT alone, over all skills as published. */
  readonly bkt: Comparison;
  /** The served probability. */
  readonly served: Comparison & { readonly published: boolean; readonly reason: string };
  /** Forecasts of the share of right answers. */
  readonly accuracy: AccuracyReport;
  readonly seconds: number;
}
