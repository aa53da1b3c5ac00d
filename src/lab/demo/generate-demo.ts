import { dayMs, formatDate } from '../../domain/base/common.js';
import { distinct, groupBy, indices } from '../../lists.js';
import { type DemoAnswer, isTestWeek, simulateAnswers } from './answers.js';
import { buildDemoGroups, drawEnrolment, findNamedEnrolment } from './enrolment.js';
import {
  createDraws,
  type DemoLearner,
  type Draws,
  drawLearner,
  drawNamedLearner,
  drawSkills,
  maxLearners,
  type NamedGoal,
  namedLearnerIds,
} from './school.js';

export interface DemoOptions {
  /** The last day, YYYY-MM-DD. */
  readonly until: string;
  readonly seed: number;
  /** 1 to 1000, without the named learners. */
  readonly learners: number;
}

/** Events up to a Sunday evening (`end`, Unix milliseconds), and the forecasts requested then. */
export type DemoWeek = ReturnType<typeof groupByWeek>[number];

const months = 8;
const weekMs = 7 * dayMs;
/** From Monday 0:00 to the forecasts on Sunday. */
const sundayEveningMs = 6 * dayMs + 20 * 3_600_000;
/** Separate seeds: adding learners does not change the others. */
const seedsPerSchool = 100_000;
const firstEnrolmentSeed = 50_000;

const findNextMonday = (ms: number): number => ms + ((8 - new Date(ms).getUTCDay()) % 7) * dayMs;

/** Deterministic. Answers are in the order of arrival. `from`: start of the first week, Unix milliseconds. */
export function generateDemo({ until, seed, learners }: DemoOptions) {
  const lastDay = Date.parse(until);
  const [start, end] = [new Date(lastDay), lastDay + dayMs];
  start.setUTCMonth(start.getUTCMonth() - months);
  const from = findNextMonday(start.getTime());
  const skills = drawSkills(seed);
  const drawsFor = (number: number): Draws => createDraws(seed * seedsPerSchool + number + 1);
  const drawn = indices(learners).map((number) => {
    const draws = drawsFor(number);
    const enrolment = drawEnrolment(drawsFor(firstEnrolmentSeed + number), number + 1);
    return { ...drawLearner(draws, number + 1, from, end), ...enrolment, draws, goal: undefined };
  });
  const named = namedLearnerIds.map((_, place) => {
    const draws = drawsFor(maxLearners + place);
    return { ...drawNamedLearner(draws, place, from, end), ...findNamedEnrolment(place), draws };
  });
  const students = [...drawn, ...named];
  const generated = students.map(({ draws, goal, ...learner }) => {
    const answers = simulateAnswers({ ...learner, schoolEnds: end }, skills, draws);
    if (goal === undefined) return { answers, goals: drawGoals(learner, lastDay, draws) };
    return { answers, goals: buildNamedGoals(learner, goal, lastDay) };
  });
  const answers = generated.flatMap((one) => one.answers).filter(({ sentAt }) => sentAt < end);
  const goals = generated.flatMap((one) => one.goals).filter(({ at }) => at < end);
  // Stable: simultaneous answers of a learner remain in order.
  answers.sort((a, b) => a.sentAt - b.sentAt);
  return {
    ...{ skills, from, weeks: groupByWeek(answers, goals, from + sundayEveningMs, end) },
    groups: buildDemoGroups(students),
    profiles: students.map(({ userId, displayName, attributes }) => ({ userId, displayName, attributes })),
  };
}

function groupByWeek(
  answers: readonly DemoAnswer[],
  goals: ReturnType<typeof drawGoals>,
  firstEnd: number,
  end: number,
) {
  const findWeek = (at: number): number => Math.max(0, Math.floor((at - firstEnd) / weekMs) + 1);
  const answersByWeek = groupBy(answers, ({ sentAt }) => findWeek(sentAt));
  const goalsByWeek = groupBy(goals, ({ at }) => findWeek(at));
  const listActiveLearners = (week: number, weeks: number): string[] => {
    const recent = indices(weeks).flatMap((back) => answersByWeek.get(week - back) ?? []);
    return distinct(recent.map(({ userId }) => userId)).sort();
  };
  return indices(findWeek(end - 1) + 1).map((week) => ({
    end: Math.min(end, firstEnd + week * weekMs),
    answers: answersByWeek.get(week) ?? [],
    goals: goalsByWeek.get(week) ?? [],
    forecasts: [
      { days: 7, userIds: listActiveLearners(week, 2) },
      ...(week % 4 === 3 ? [{ days: 30, userIds: listActiveLearners(week, 4) }] : []),
    ],
  }));
}

function buildNamedGoals({ userId, from }: DemoLearner, goal: NamedGoal | null, lastDay: number) {
  if (goal === null) return [];
  const { score: targetScore, inDays, isGivenUp } = goal;
  const targetDate = inDays === null ? null : formatDate(lastDay + inDays * dayMs);
  const set = { userId, setting: { targetScore, targetDate }, at: from + 14 * dayMs };
  return [set, ...(isGivenUp ? [{ userId, setting: null, at: from + 104 * dayMs }] : [])];
}

function drawGoals({ userId, ability, from }: DemoLearner, lastDay: number, draws: Draws) {
  if (!draws.chance(0.65)) return [];
  const at = from + Math.round(draws.between(3, 30) * dayMs);
  const targetScore = 10 * Math.round(draws.normal(1100 + 100 * ability, 50) / 10);
  const tests = indices(35).map((week) => findNextMonday(at) + (week + 4) * weekMs);
  const past = tests.filter((monday) => isTestWeek(monday) && monday + 5 * dayMs <= lastDay);
  const day = draws.chance(0.7) && past.length > 0 ? draws.pick(past) + 5 * dayMs : lastDay + 60 * dayMs;
  const goal = {
    targetScore,
    targetDate: draws.chance(0.6) ? formatDate(day) : null,
  };
  const later = at + Math.round(draws.between(40, 120) * dayMs);
  const change = draws.between(0, 1);
  const raised = { ...goal, targetScore: targetScore + 10 * draws.whole(2, 8) };
  const changed = { userId, setting: change < 0.06 ? null : raised, at: later };
  return [{ userId, setting: goal, at }, ...(change < 0.2 ? [changed] : [])];
}
