/** Where a learner stands: what answers say of both sections, and the abilities that follow. */

import type { PerSection, Section } from '../base/types.js';
import { type Catalogue, knownTotals } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import type { LearnerState } from '../tracing/states.js';
import { type AbilityEstimate, estimateAbilities, scoresOf } from './score.js';
import { measureSection, type SectionMeasure } from './section-measure.js';

/** Whose forecast it is, and what else it depends on. */
export interface ForecastSubject {
  readonly learner: LearnerState;
  /** All the learner's skills, as they are now. */
  readonly views: readonly SkillView[];
  readonly catalogue: Catalogue;
  /** Number of different skills that the tenant set, or that learners enough answered. */
  readonly knownSkills: number;
  /** Unix milliseconds. */
  readonly now: number;
}

/** Where a learner stands now. */
export interface Standing {
  readonly measures: PerSection<SectionMeasure>;
  readonly estimate: AbilityEstimate;
}

export function standingOf({ learner, views, catalogue, knownSkills }: ForecastSubject): Standing {
  const measure = (section: Section): SectionMeasure =>
    measureSection(views, section, learner[section], knownTotals(catalogue, knownSkills, section));
  const measures = { math: measure('math'), rw: measure('rw') };
  return { measures, estimate: estimateAbilities(measures) };
}

/** Total score as it is now. */
export const currentTotal = (subject: ForecastSubject): number =>
  scoresOf(standingOf(subject).estimate.theta).total;
