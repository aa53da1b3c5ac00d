import { defaultGoal, type GoalProgress, trackGoal } from './goal.js';
import { normalCdf } from './normal.js';
import { goalModel } from './params.js';
import { clamp, round4 } from './probability.js';
import {
  type AbilityEstimate,
  estimateAbilities,
  forecastScores,
  type PerSection,
  type ScoreForecast,
  type Scores,
  type SectionEvidence,
  scoresOf,
} from './score.js';
import type { LearnerState, Section, SkillState } from './types.js';

/** Horizon of the `predicted_*_in_30_days` fields. */
export const standardDays = 30;

export interface ForecastRequest {
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
}

/** Everything that the predictions answer tells. */
export interface Forecast {
  readonly current: Scores;
  readonly in30Days: Scores;
  readonly requested: ScoreForecast;
  readonly goal: GoalProgress & { readonly probability: number };
  readonly dataPoints: PerSection<number>;
  /** Share of the population's variance that the answers explain, 0 to 1. */
  readonly reliability: PerSection<number>;
}

/**
 * A learner's forecast. The projection is flat: the best known score today is the forecast for every day, with
 * intervals that widen with distance.
 *
 * @param knownSkills number of skills that the tenant's learners ever answered, at least the learner's own
 */
export function forecastLearner(
  learner: LearnerState,
  skills: readonly SkillState[],
  knownSkills: number,
  { days, level }: ForecastRequest,
): Forecast {
  const estimate = estimateLearner(learner, skills, knownSkills);
  const at = (day: number): ScoreForecast => forecastScores(estimate, noChange, day, level);
  const requested = at(days);
  const current = scoresOf(estimate.theta);
  const goal = defaultGoal(learner.baselineTotal);
  const progress = trackGoal(goal, learner.baselineTotal, current.total, () => current.total);
  return {
    current,
    in30Days: at(standardDays).scores,
    requested,
    goal: { ...progress, probability: reachProbability(goal.targetScore, requested) },
    dataPoints: { math: learner.math.answers, rw: learner.rw.answers },
    reliability: reliabilityOf(estimate),
  };
}

const noChange: PerSection<number> = { math: 0, rw: 0 };

/** No skill has a section yet: each counts half in both. */
const unmappedWeight = 0.5;

const estimateLearner = (
  learner: LearnerState,
  skills: readonly SkillState[],
  knownSkills: number,
): AbilityEstimate =>
  estimateAbilities({
    math: sectionEvidence('math', learner, skills, knownSkills),
    rw: sectionEvidence('rw', learner, skills, knownSkills),
  });

function sectionEvidence(
  section: Section,
  learner: LearnerState,
  skills: readonly SkillState[],
  knownSkills: number,
): SectionEvidence {
  return {
    ability: learner[section],
    skills: skills.map(({ mastery }) => ({ mastery, weight: unmappedWeight })),
    seenSkills: unmappedWeight * skills.length,
    knownWeight: unmappedWeight * Math.max(knownSkills, skills.length),
  };
}

const reachProbability = (target: number, { totalCentre, totalSd }: ScoreForecast): number =>
  round4(1 - normalCdf((target - totalCentre) / totalSd));

const reliabilityOf = ({ variance }: AbilityEstimate): PerSection<number> => ({
  math: round4(clamp(1 - variance.math, 0, 1)),
  rw: round4(clamp(1 - variance.rw, 0, 1)),
});

/**
 * The baseline total that a goal's progress is measured from: stored once, when the learner first has enough
 * answers; null until then.
 */
export function baselineOf(
  learner: LearnerState,
  skills: readonly SkillState[],
  knownSkills: number,
): number | null {
  if (learner.baselineTotal !== null) return learner.baselineTotal;
  if (learner.attempts < goalModel.baselineAnswers) return null;
  return scoresOf(estimateLearner(learner, skills, knownSkills).theta).total;
}
