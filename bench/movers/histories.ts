import { buildStudyAdvice } from '../../src/domain/advice/study-advice.js';
import { dayMs } from '../../src/domain/base/common.js';
import { isMastered } from '../../src/domain/learner/expected-accuracy.js';
import type { ForecastSubject } from '../../src/domain/score/assessment.js';
import { defaultForecastDays, forecastLearner } from '../../src/domain/score/learner-forecast.js';
import { createDraws, type Draws } from '../../src/lab/demo/school.js';
import { indices } from '../../src/lists.js';
import { mean } from '../results/spread.js';
import { createServedLearner } from '../simulation/served-learner.js';
import { shuffle, type Tenant } from './tenants.js';

export interface History {
  readonly skills: number;
  readonly answers: number;
  /** `progress` goes from 0 (first answer) to 1 (last). */
  readonly chance: (progress: number) => number;
  /** Skills take turns, and the share of right answers is exact. */
  readonly isExact?: true;
  /** Per answer; default: about 40. */
  readonly seconds?: number;
  /** Days from the last answer to the report. */
  readonly idleDays?: number;
}

const createLine = (from: number, to: number) => (progress: number) => from + (to - from) * progress;
const createJump = (from: number, to: number) => (progress: number) => (progress < 2 / 3 ? from : to);

const chances: Readonly<Record<string, History['chance']>> = {
  improves: createLine(0.35, 0.85),
  'constant .60': () => 0.6,
  declines: createLine(0.85, 0.45),
  'constant .45': () => 0.45,
  'constant .85': () => 0.85,
  'drops suddenly': createJump(0.85, 0.45),
  'rises suddenly': createJump(0.45, 0.85),
};

export const moverCases = Object.entries(chances).map(([name, chance]) => ({
  name,
  history: { skills: 12, answers: 900, chance },
}));

const createExactCase = (answers: number, right: number, skills: number) => ({
  name: `${right} of ${answers} correct, ${skills} skills`,
  history: { skills, answers, chance: () => right / answers, isExact: true } satisfies History,
});

export const panelCases = [
  ...[4, 8].map((skills) => createExactCase(42, 29, skills)),
  ...[10, 20].flatMap((skills) => [150, 100, 180].map((right) => createExactCase(200, right, skills))),
  createExactCase(20, 20, 1),
  createExactCase(40, 40, 2),
  createExactCase(3, 0, 1),
];

export const portraitCases: readonly { readonly name: string; readonly history: History }[] = [
  { name: 'beginner', history: { skills: 6, answers: 40, chance: () => 0.45 } },
  { name: 'strong', history: { skills: 12, answers: 600, chance: () => 0.92 } },
  { name: 'improves', history: { skills: 12, answers: 600, chance: createLine(0.35, 0.85) } },
  { name: 'declines', history: { skills: 12, answers: 600, chance: createLine(0.85, 0.45) } },
  { name: 'guesses within 2 s', history: { skills: 12, answers: 300, chance: () => 0.25, seconds: 2 } },
  { name: 'stopped 45 days ago', history: { skills: 12, answers: 400, chance: () => 0.7, idleDays: 45 } },
  { name: 'four answers', history: { skills: 2, answers: 4, chance: () => 0.5 } },
];

const answersPerDay = 15;
export const msPerAnswer = 180_000;
const start = Date.UTC(2026, 0, 5, 9);
const recentAnswers = 100;

export const computeAnswerTime = (i: number): number =>
  start + dayMs * Math.floor(i / answersPerDay) + msPerAnswer * (i % answersPerDay);

export function runHistory({ model, knownSkills, drawSkills }: Tenant, history: History, seed: number) {
  const draws = createDraws(seed);
  const askers = drawSkills(history.skills, draws);
  const learner = createServedLearner(model, knownSkills);
  const outcomes = drawOutcomes(history, draws);
  const predicted = outcomes.map((isCorrect, i) => {
    const ask = history.isExact ? askers[i % askers.length] : draws.pick(askers);
    const timeSpentSeconds = history.seconds ?? Math.max(10, Math.round(draws.normal(40, 10)));
    const outcome = { isCorrect, occurredAt: computeAnswerTime(i), timeSpentSeconds };
    return learner.count((ask as (typeof askers)[number])(), outcome).conditions.pCorrect;
  });
  const now = computeAnswerTime(history.answers - 1) + dayMs * (history.idleDays ?? 0) + msPerAnswer;
  const { figures, advice } = summarize(learner.subjectAt(now));
  const latest = {
    observed: mean(outcomes.slice(-recentAnswers).map(Number)),
    predicted: mean(predicted.slice(-recentAnswers)),
  };
  return { figures: { ...latest, ...figures }, advice };
}

function drawOutcomes({ answers, chance, isExact }: History, draws: Draws): boolean[] {
  if (isExact) return shuffle(indices(answers), draws).map((i) => i < Math.round(answers * chance(0)));
  return indices(answers).map((i) => draws.chance(chance(i / (answers - 1))));
}

function summarize(subject: ForecastSubject) {
  const forecastIn = (days: number) => forecastLearner(subject, { days, level: 0.8, goal: null });
  const forecast = forecastIn(defaultForecastDays);
  const { goal, neededRate, measures } = forecast;
  const context = { ...subject, measures, goal: { ...goal, neededRate }, locale: 'en' as const };
  const { views } = subject;
  return {
    figures: {
      mastered: views.filter((view) => isMastered(view, subject)).length,
      mastery: mean(views.map(({ mastery }) => mastery)),
      total: forecast.current.total,
      total30: forecast.in30Days.total,
      total90: forecastIn(90).requested.scores.total,
      target: goal.targetScore,
      onTrack: Number(goal.onTrack),
      goalProbability: goal.probability,
      expectedShare: forecast.accuracy.expected,
    },
    advice: buildStudyAdvice(context),
  };
}
