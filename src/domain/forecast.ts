/** A learner's scores from today on, under a habit of practice. */
import { practiceOf } from './activity.js';
import { type Catalogue, knownTotals, type SectionTotals, shareOf } from './catalogue.js';
import { dayOf } from './forgetting.js';
import { activityModel, goalModel, projectionModel } from './params.js';
import { isPlateau } from './plateau.js';
import { daysBetween, type Outlook, outlookOf, type ProjectedSkill } from './projection.js';
import {
  type AbilityEstimate,
  estimateAbilities,
  forecastScores,
  type ScoreForecast,
  type Scores,
  type SectionEvidence,
  scoresOf,
} from './score.js';
import type { SkillView } from './skill-view.js';
import type { LearnerState, PerSection, Section } from './types.js';

/** Whose forecast it is, and what else it depends on. */
export interface ForecastSubject {
  readonly learner: LearnerState;
  /** All the learner's skills, as they are now. */
  readonly views: readonly SkillView[];
  readonly catalogue: Catalogue;
  /** Number of different skills that the tenant set or its learners answered. */
  readonly knownSkills: number;
  /** Unix milliseconds. */
  readonly now: number;
}

/** How much a skill is practised from now on. */
export interface SkillPractice {
  /** Answers per day. */
  readonly rate: number;
  /** Share of its mastery that practice keeps from fading, 0 to 1. */
  readonly freshness: number;
}

/** How a learner goes on; a skill without a section is asked for in both. */
export type Habit = (view: SkillView, section: Section) => SkillPractice;

/** As in the last 14 days: the section's answers spread over its known skills. */
export function presentHabit({ learner, catalogue, knownSkills, now }: ForecastSubject): Habit {
  const practice = practiceOf(learner.activity, dayOf(now));
  const habitOf = (section: Section): SkillPractice => ({
    rate: practice[section].rate / Math.max(1, knownTotals(catalogue, knownSkills, section).skills),
    freshness: Math.min(1, practice[section].activeDays / projectionModel.activeDays),
  });
  const habits = { math: habitOf('math'), rw: habitOf('rw') };
  return (_, section) => habits[section];
}

/** Practice at a steady rate per section, spread over its known skills. */
export function steadyHabit({ catalogue, knownSkills }: ForecastSubject, rates: PerSection<number>): Habit {
  const habitOf = (section: Section): SkillPractice => ({
    rate: rates[section] / Math.max(1, knownTotals(catalogue, knownSkills, section).skills),
    freshness: dailyFreshness(rates[section]),
  });
  const habits = { math: habitOf('math'), rw: habitOf('rw') };
  return (_, section) => habits[section];
}

/**
 * What practice at a steady rate keeps from fading: below one answer a day there are days without any.
 *
 * @param answersPerDay 0 or more
 */
export const dailyFreshness = (answersPerDay: number): number =>
  Math.min(1, (activityModel.days * Math.min(1, answersPerDay)) / projectionModel.activeDays);

/** Scores of one learner for every day within a year, under one habit. */
export interface Forecast {
  readonly current: Scores;
  /** @param days 0 to 365 */
  scoresIn(days: number): Scores;
  /** Expected change of each ability until then, on the population's scale. */
  changeIn(days: number): PerSection<number>;
  /** @param level of the intervals, 0.5 to 0.99 */
  forecastIn(days: number, level: number): ScoreForecast;
  /** Smallest number of days, 0 to 365, whose predicted total meets the target; null if none does. */
  daysTo(target: number): number | null;
}

/**
 * @param added skills beside the learner's own that the habit brings in: they count in the projection's mean from
 * its start, and in nothing else
 */
export function forecastUnder(
  subject: ForecastSubject,
  estimate: AbilityEstimate,
  habit: Habit,
  added: readonly SkillView[] = [],
): Forecast {
  const views = [...subject.views, ...added];
  const outlook: PerSection<Outlook> = {
    math: outlookOf(projectedSkills(views, 'math', habit, subject.now)),
    rw: outlookOf(projectedSkills(views, 'rw', habit, subject.now)),
  };
  const { theta } = estimate;
  const changeIn = (days: number) => ({ math: outlook.math.change(days), rw: outlook.rw.change(days) });
  const bestScores = (from: number, to: number): Scores =>
    scoresOf({
      math: theta.math + outlook.math.bestChange(from, to),
      rw: theta.rw + outlook.rw.bestChange(from, to),
    });
  const bestTotal = (from: number, to: number): number => bestScores(from, to).total;
  return {
    current: scoresOf(theta),
    scoresIn: (days) => bestScores(days, days),
    changeIn,
    forecastIn: (days, level) => forecastScores(estimate, changeIn(days), days, level),
    daysTo: (target) =>
      firstDay(bestTotal, target, 0, 0) ?? firstDay(bestTotal, target, 1, goalModel.horizonDays),
  };
}

/**
 * Forgetting and practice pull a total both ways, so that halving the days alone could miss the first one. A range
 * is left out where even the least forgetting and the most practice in it do not reach the target.
 */
function firstDay(
  bestTotal: (from: number, to: number) => number,
  target: number,
  from: number,
  to: number,
): number | null {
  if (bestTotal(from, to) < target) return null;
  if (from === to) return from;
  const middle = (from + to) >> 1;
  return firstDay(bestTotal, target, from, middle) ?? firstDay(bestTotal, target, middle + 1, to);
}

function projectedSkills(
  views: readonly SkillView[],
  section: Section,
  habit: Habit,
  now: number,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  for (const view of views) {
    const share = shareOf(view.placement, section);
    if (share > 0) projected.push(projectedSkill(view, share, habit(view, section), now));
  }
  return projected;
}

const projectedSkill = (
  { state, model, placement, mastery }: SkillView,
  share: number,
  { rate, freshness }: SkillPractice,
  now: number,
): ProjectedSkill => ({
  mastery,
  weight: share * placement.weight,
  pInit: model.parameters.pInit,
  pLearn: model.parameters.pLearn,
  onPlateau: isPlateau(state.plateau),
  idleDays: state.attempts === 0 ? 0 : daysBetween(state.lastAttemptAt, now),
  correctDays: state.correctDays,
  rate,
  freshness,
});

/** Both abilities as they are now. */
export const estimateLearner = (subject: ForecastSubject): AbilityEstimate =>
  estimateAbilities({ math: evidenceOf(subject, 'math'), rw: evidenceOf(subject, 'rw') });

function evidenceOf(
  { learner, views, catalogue, knownSkills }: ForecastSubject,
  section: Section,
): SectionEvidence {
  const skills: { mastery: number; weight: number }[] = [];
  let seenSkills = 0;
  for (const { placement, mastery } of views) {
    const share = shareOf(placement, section);
    if (share === 0) continue;
    seenSkills += share;
    skills.push({ mastery, weight: share * placement.weight });
  }
  const known: SectionTotals = knownTotals(catalogue, Math.max(knownSkills, views.length), section);
  return { ability: learner[section], skills, seenSkills, knownWeight: known.weight };
}

/** Total score as it is now. */
export const currentTotal = (subject: ForecastSubject): number =>
  scoresOf(estimateLearner(subject).theta).total;
