/** Future practice of each skill, distributed over the skills like recent practice. */

import { dayMs, mapSections, type PerSection, type Section } from '../base/common.js';
import { projectionConstants, scoreConstants } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { estimatePractice, type Practice } from '../tracing/activity.js';
import type { SkillState } from '../tracing/learner-states.js';
import { activityConstants } from '../tracing/tracing-constants.js';
import { computeSkillsPerAnswer, type LearnerAssessment, type SectionMeasure } from './assessment.js';

export interface PracticeHabit {
  /** @param view null for skills without answers */
  practiceFor(view: SkillView | null, section: Section): SkillPractice;
  readonly isEqualBySection: boolean;
}

export const estimateCurrentPractice = ({ learner, today }: LearnerAssessment): PerSection<Practice> =>
  estimatePractice(learner.activity, learner.attempts, today);

export const buildSteadyHabit = (
  assessment: LearnerAssessment,
  { math, rw }: PerSection<number>,
): PracticeHabit => buildHabit(assessment, { math: buildSteadyPractice(math), rw: buildSteadyPractice(rw) });

export const buildSteadyPractice = (rate: number): Practice => ({
  rate,
  activeDays: activityConstants.days * Math.min(1, rate),
});

/**
 * Distributes a section's answers over its skills as before: by answers, and by how recently each skill was
 * practised. In a section without answers, all known skills get the same share.
 */
export function buildHabit(
  { measures, views, learner }: LearnerAssessment,
  practice: PerSection<Practice>,
): PracticeHabit {
  const lastAt = views.reduce((last, { state }) => Math.max(last, state.lastAttemptAt), 0);
  const counts = new Map(views.map((view) => [view, countRecentAnswers(view.state, lastAt)]));
  const sums = mapSections((section) =>
    views.reduce(
      (sum, view) => sum + computeSectionShare(view.placement, section) * (counts.get(view) as number),
      0,
    ),
  );
  const skillsPerAnswer = computeSkillsPerAnswer({ views, learner });
  const fineness = mapSections((section) => skillsPerAnswer * computeFineness(measures[section]));
  const uniform = mapSections((section) =>
    computeSkillPractice(practice[section], fineness[section] / measures[section].registeredSkills),
  );
  const unseen = mapSections((section) => computeSkillPractice(practice[section], 0));
  return {
    practiceFor: (view, section) => {
      if (sums[section] === 0) return uniform[section];
      const count = (view && counts.get(view)) ?? 0;
      if (view === null || count === 0) return unseen[section];
      const { rate, activeDays } = practice[section];
      const recent = { rate, activeDays: activeDays * computeRecency(view.state, lastAt) };
      return computeSkillPractice(recent, (fineness[section] * count) / sums[section]);
    },
    isEqualBySection:
      practice.math.rate === practice.rw.rate && practice.math.activeDays === practice.rw.activeDays,
  };
}

/** Each of few skills covers many fine ones, so an answer to it brings less. */
export const computeFineness = ({ registeredSkills }: Pick<SectionMeasure, 'registeredSkills'>): number =>
  Math.min(1, registeredSkills / scoreConstants.leastSkills);

/** Few answers are a weak sign of a preference. Rounded: skills with equal practice share one term of the projection. */
function countRecentAnswers(state: SkillState, lastAt: number): number {
  const { priorAnswers } = projectionConstants;
  return state.attempts === 0
    ? 0
    : roundInOctaves((state.attempts + priorAnswers) * computeRecency(state, lastAt), 4);
}

/** 1 for skills of the last `recentDays`; halves with every such time before. */
function computeRecency({ lastAttemptAt }: SkillState, lastAt: number): number {
  const times = (lastAt - lastAttemptAt) / (projectionConstants.recentDays * dayMs);
  return times <= 1 ? 1 : roundInOctaves(2 ** (1 - times), 2);
}

/** @param steps per factor of 2 */
const roundInOctaves = (value: number, steps: number): number =>
  2 ** (Math.round(Math.log2(value) * steps) / steps);

export type SkillPractice = ReturnType<typeof computeSkillPractice>;

export function computeSkillPractice({ rate, activeDays }: Practice, share: number) {
  const { activeDays: fullActiveDays, spacingDays, rightShare } = projectionConstants;
  const active = activeDays / activityConstants.days;
  const answersThen = active === 0 ? 0 : (rate * share) / active;
  return {
    /** Answers per day. */
    rate: rate * share,
    /** Share of mastery that practice protects from forgetting. */
    freshness: Math.min(1, activeDays / fullActiveDays),
    /** Future days with a correct answer, which lengthen the half-life. */
    rightDays: spacingDays * active * -Math.expm1(-rightShare * answersThen),
  };
}
