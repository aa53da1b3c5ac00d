/** Where a learner stands: what answers say about both sections, and the abilities that follow. */

import { scoreModel } from '../base/params.js';
import { type PerSection, perSection } from '../base/types.js';
import { knownTotals } from '../catalogue/catalogue.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import type { LearnerState } from '../tracing/states.js';
import { measureSection, type SectionMeasure } from './section-measure.js';

/** Whose forecast it is, and what else it depends on. */
export interface ForecastSubject {
  readonly learner: LearnerState;
  /** All the learner's skills, as they are now. */
  readonly views: readonly SkillView[];
  /** With the tenant's catalogue. */
  readonly model: TenantModel;
  /** Number of different skills that the tenant set, or that enough learners answered. */
  readonly knownSkills: number;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Standing {
  readonly measures: PerSection<SectionMeasure>;
  readonly estimate: AbilityEstimate;
}

/** Both abilities after shrinkage to the population, on its scale of mean 0 and variance 1. */
export interface AbilityEstimate {
  readonly theta: PerSection<number>;
  readonly variance: PerSection<number>;
  readonly covariance: number;
  /** Variance of the error that all of a section's skills have in common; no part of `variance`. */
  readonly distrust: PerSection<number>;
}

export function standingOf({ learner, views, model, knownSkills }: ForecastSubject): Standing {
  const measures = perSection((section) =>
    measureSection(views, section, learner[section], knownTotals(model.catalogue, knownSkills, section)),
  );
  return { measures, estimate: estimateAbilities(measures) };
}

/**
 * Both measures are shrunk together under the prior [[1, rho], [rho, 1]]: a section without data borrows from the other.
 * Source: science notes 6.2.
 */
function estimateAbilities({ math, rw }: PerSection<SectionMeasure>): AbilityEstimate {
  const rho = scoreModel.correlation;
  const prior = 1 / (1 - rho * rho);
  const a = prior + 1 / math.noise;
  const d = prior + 1 / rw.noise;
  const b = -rho * prior;
  const determinant = a * d - b * b;
  const variance = { math: d / determinant, rw: a / determinant };
  const covariance = -b / determinant;
  const pullMath = math.value / math.noise;
  const pullRw = rw.value / rw.noise;
  const theta = {
    math: variance.math * pullMath + covariance * pullRw,
    rw: covariance * pullMath + variance.rw * pullRw,
  };
  return { theta, variance, covariance, distrust: { math: math.distrust, rw: rw.distrust } };
}
