/** What a fit reports about itself; published with the model. */
import type { AccuracyReport } from './accuracy/fit.js';
import type { LossComparison } from './bkt/trace.js';

/** Mean log loss on the same held-out answers, with what was in force and with what was fitted; null: no answers. */
export interface Comparison {
  readonly answers: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
}

export const comparisonOf = ({ answers, candidate, current }: LossComparison): Comparison => ({
  answers,
  oldLogLoss: answers === 0 ? null : current,
  newLogLoss: answers === 0 ? null : candidate,
});

/** Whether the fit of this version brought what is in force, and why not; the reason is empty where it did. */
interface Verdict {
  readonly published: boolean;
  readonly reason: string;
}

export type SkillReport = Comparison & Verdict & { readonly skillId: string };

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
  readonly served: Comparison & Verdict;
  /** Forecasts of the share of right answers. */
  readonly accuracy: AccuracyReport;
  readonly seconds: number;
}
