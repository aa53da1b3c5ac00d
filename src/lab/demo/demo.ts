/** The demo as a whole: everything that happened in a school, in the order in which it reached the platform. */
import { dayMs } from '../../domain/base/common.js';
import type { GoalSetting } from '../../domain/score/goal.js';
import { groupedBy, indices } from '../../lists.js';
import { answersOf, type DemoAnswer, isTestWeek } from './answers.js';
import { type DemoLearner, type Draws, drawLearner, drawSkills, drawsOf } from './school.js';

export interface DemoOptions {
  /** The last day, YYYY-MM-DD. */
  readonly until: string;
  readonly seed: number;
  readonly learners: number;
}

export interface DemoGoal {
  readonly userId: string;
  /** Null: it is deleted. */
  readonly setting: GoalSetting | null;
  /** Unix milliseconds. */
  readonly at: number;
}

export interface DemoForecast {
  readonly userIds: readonly string[];
  readonly days: number;
}

/** What happened until a Sunday evening, and the forecasts that were looked at then. */
export interface DemoWeek {
  /** Unix milliseconds. */
  readonly end: number;
  readonly answers: readonly DemoAnswer[];
  readonly goals: readonly DemoGoal[];
  readonly forecasts: readonly DemoForecast[];
}

const months = 8;
const weekMs = 7 * dayMs;
const eveningMs = 20 * 3_600_000;
/** Every learner draws from a seed of their own: more learners leave the others as they are. */
const learnerSeeds = 100_000;

/** The same options give the same. */
export function makeDemo({ until, seed, learners }: DemoOptions) {
  const lastDay = Date.parse(until);
  const end = lastDay + dayMs;
  const start = new Date(lastDay);
  start.setUTCMonth(start.getUTCMonth() - months);
  const from = mondayFrom(start.getTime());
  const skills = drawSkills(seed);
  const answers: DemoAnswer[] = [];
  const goals: DemoGoal[] = [];
  for (const number of indices(learners)) {
    const draws = drawsOf(seed * learnerSeeds + number + 1);
    const learner = drawLearner(draws, number + 1, from, end);
    answers.push(...answersOf(learner, skills, draws));
    goals.push(...goalsOf(learner, lastDay, draws));
  }
  // Stable, so that a learner's answers of one moment stay in their order.
  const sent = answers.filter(({ sentAt }) => sentAt < end).sort((a, b) => a.sentAt - b.sentAt);
  return {
    skills,
    weeks: weeksOf(
      sent,
      goals.filter(({ at }) => at < end),
      from,
      end,
    ),
  };
}

const mondayFrom = (ms: number): number => ms + ((8 - new Date(ms).getUTCDay()) % 7) * dayMs;

function weeksOf(
  answers: readonly DemoAnswer[],
  goals: readonly DemoGoal[],
  from: number,
  end: number,
): DemoWeek[] {
  const firstEnd = from + 6 * dayMs + eveningMs;
  const weekOf = (at: number): number => Math.max(0, Math.floor((at - firstEnd) / weekMs) + 1);
  const [answersIn, goalsIn] = [
    groupedBy(answers, ({ sentAt }) => weekOf(sentAt)),
    groupedBy(goals, ({ at }) => weekOf(at)),
  ];
  const lastAt = new Map<string, number>();
  return indices(weekOf(end - 1) + 1).map((week) => {
    const weekEnd = Math.min(end, firstEnd + week * weekMs);
    const own = answersIn.get(week) ?? [];
    for (const { userId, sentAt } of own) lastAt.set(userId, sentAt);
    const activeFor = (days: number): string[] =>
      [...lastAt].flatMap(([userId, at]) => (at > weekEnd - days * dayMs ? [userId] : [])).sort();
    const month = week % 4 === 3 ? [{ days: 30, userIds: activeFor(28) }] : [];
    return {
      ...{ end: weekEnd, answers: own, goals: goalsIn.get(week) ?? [] },
      forecasts: [{ days: 7, userIds: activeFor(14) }, ...month],
    };
  });
}

/** Two of three set a goal in their first weeks; some change it later, or give it up. */
function goalsOf({ userId, ability, from }: DemoLearner, lastDay: number, draws: Draws): DemoGoal[] {
  if (!draws.chance(0.65)) return [];
  const at = from + Math.round(draws.between(3, 30) * dayMs);
  const first = 10 * Math.round(draws.normal(1060 + 100 * ability, 50) / 10);
  const goal = { targetScore: first, targetDate: draws.chance(0.6) ? drawDate(at, lastDay, draws) : null };
  const later = at + Math.round(draws.between(40, 120) * dayMs);
  const change = draws.between(0, 1);
  const raised = { ...goal, targetScore: first + 10 * draws.whole(2, 8) };
  return [
    { userId, setting: goal, at },
    ...(change < 0.2 ? [{ userId, setting: change < 0.06 ? null : raised, at: later }] : []),
  ];
}

/** A Saturday with a test, or some months after the demo's last day. */
function drawDate(at: number, lastDay: number, draws: Draws): string {
  const mondays = indices(40).map((week) => mondayFrom(at) + (7 * week + 28) * dayMs);
  const tests = mondays
    .filter((monday) => isTestWeek(monday) && monday < lastDay)
    .map((day) => day + 5 * dayMs);
  const after = lastDay + draws.whole(20, 120) * dayMs;
  return new Date(draws.chance(0.7) && tests.length > 0 ? draws.pick(tests) : after)
    .toISOString()
    .slice(0, 10);
}
