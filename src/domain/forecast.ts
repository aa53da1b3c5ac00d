/** A learner's scores from today on, under a habit of practice. */
import { type Practice, practiceOf } from './activity.js';
import { type Catalogue, knownTotals, shareOf } from './catalogue.js';
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
import { type SkillView, sectionSums } from './skill-view.js';
import type { LearnerState, PerSection, Section } from './types.js';

/** Whose forecast it is, and what else it depends on. */
export interface ForecastSubject {
  readonly learner: LearnerState;
  /** All the learner's skills, as they are now. */
  readonly views: readonly SkillView[];
  readonly catalogue: Catalogue;
  /** Number of different skills that the tenant set or its learners answered, no fewer than `views`. */
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

/** How a learner goes on. */
export interface Habit {
  /** A skill without a section is asked for in both. */
  of(view: SkillView, section: Section): SkillPractice;
  /** Whether a skill is practised alike in both. */
  readonly isSame: boolean;
}

/** As in the last 14 days. */
export function presentHabit(subject: ForecastSubject): Habit {
  const practice = practiceOf(subject.learner.activity, dayOf(subject.now));
  const as = ({ rate, activeDays }: Practice): SkillPractice => ({
    rate,
    freshness: Math.min(1, activeDays / projectionModel.activeDays),
  });
  return spread(subject, { math: as(practice.math), rw: as(practice.rw) });
}

/** Practice at a steady rate per section. */
export function steadyHabit(subject: ForecastSubject, rates: PerSection<number>): Habit {
  const at = (rate: number): SkillPractice => ({ rate, freshness: dailyFreshness(rate) });
  return spread(subject, { math: at(rates.math), rw: at(rates.rw) });
}

/** A section's answers spread over its known skills. */
function spread({ catalogue, knownSkills }: ForecastSubject, practice: PerSection<SkillPractice>): Habit {
  const of = (section: Section): SkillPractice => {
    const { skills } = knownTotals(catalogue, knownSkills, section);
    const { rate, freshness } = practice[section];
    return { rate: skills === 0 ? 0 : rate / skills, freshness };
  };
  const habits = { math: of('math'), rw: of('rw') };
  const isSame = habits.math.rate === habits.rw.rate && habits.math.freshness === habits.rw.freshness;
  return { of: (_, section) => habits[section], isSame };
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
  const views = added.length === 0 ? subject.views : [...subject.views, ...added];
  const bestChange = bestChangeOf(views, habit, subject.now);
  const { theta } = estimate;
  const current = scoresOf(theta);
  const changeIn = (days: number) => bestChange(days, days);
  const bestScores = (from: number, to: number): Scores => {
    const { math, rw } = bestChange(from, to);
    return scoresOf({ math: theta.math + math, rw: theta.rw + rw });
  };
  const bestTotal = (from: number, to: number): number => bestScores(from, to).total;
  return {
    current,
    scoresIn: (days) => bestScores(days, days),
    changeIn,
    forecastIn: (days, level) => forecastScores(estimate, changeIn(days), days, level),
    daysTo: (target) => (current.total >= target ? 0 : firstDay(bestTotal, target, 1, goalModel.horizonDays)),
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

type BestChange = (from: number, to: number) => PerSection<number>;

/** Of a tenant without a catalogue both sections look the same, so one of them is looked at. */
function bestChangeOf(views: readonly SkillView[], habit: Habit, now: number): BestChange {
  const math = sectionOutlook(views, 'math', habit, now);
  if (habit.isSame && views.every(({ placement }) => placement.section === null)) {
    return (from, to) => {
      const change = math(from, to);
      return { math: change, rw: change };
    };
  }
  const rw = sectionOutlook(views, 'rw', habit, now);
  return (from, to) => ({ math: math(from, to), rw: rw(from, to) });
}

const sectionOutlook = (views: readonly SkillView[], section: Section, habit: Habit, now: number): Outlook =>
  outlookOf(views, (view) => {
    const share = shareOf(view.placement, section);
    return share === 0 ? null : projectedSkill(view, share, habit.of(view, section), now);
  });

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
export function estimateLearner({
  learner,
  views,
  catalogue,
  knownSkills,
}: ForecastSubject): AbilityEstimate {
  const seen = sectionSums(views);
  const evidenceOf = (section: Section): SectionEvidence => ({
    ability: learner[section],
    seen: seen[section],
    knownWeight: knownTotals(catalogue, knownSkills, section).weight,
  });
  return estimateAbilities({ math: evidenceOf('math'), rw: evidenceOf('rw') });
}

/** Total score as it is now. */
export const currentTotal = (subject: ForecastSubject): number =>
  scoresOf(estimateLearner(subject).theta).total;
