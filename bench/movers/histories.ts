import { buildStudyAdvice } from '../../src/domain/advice/study-advice.js';
import { dayMs } from '../../src/domain/base/common.js';
import { isMastered } from '../../src/domain/learner/expected-accuracy.js';
import { computeToday, type ForecastSubject } from '../../src/domain/score/assessment.js';
import { defaultForecastDays, forecastLearner } from '../../src/domain/score/learner-forecast.js';
import { computeGrowth } from '../../src/domain/tracing/trend.js';
import { createDraws, type Draws } from '../../src/lab/demo/school.js';
import { indices } from '../../src/lists.js';
import { mean } from '../results/spread.js';
import { createServedLearner } from '../simulation/served-learner.js';
import { shuffle, type Tenant } from './tenants.js';

export interface History {
  readonly skills: number;
  readonly answers: number;
  /** `progress` goes from 0 (first answer) to 1 (last). */
  readonly chance: (progress: number, answer: number) => number;
  /** Default: 15. */
  readonly perDay?: number;
  /** Days without answers before the answer of this number. */
  readonly pause?: { readonly answer: number; readonly days: number };
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

const constant =
  (share: number): History['chance'] =>
  () =>
    share;

export const growthCases: readonly { readonly name: string; readonly history: History }[] = [
  { name: 'constant .60, 12 skills', history: { skills: 12, answers: 900, chance: constant(0.6) } },
  { name: 'constant .85, 12 skills', history: { skills: 12, answers: 900, chance: constant(0.85) } },
  {
    name: 'drills one skill, .72',
    history: { skills: 1, answers: 5000, chance: constant(0.72), perDay: 50 },
  },
  {
    name: 'constant .71, 40 skills',
    history: { skills: 40, answers: 3000, chance: constant(0.71), perDay: 50 },
  },
  { name: 'guesses .25, 12 skills', history: { skills: 12, answers: 900, chance: constant(0.25) } },
  { name: 'improves .35 to .85', history: { skills: 12, answers: 900, chance: createLine(0.35, 0.85) } },
  { name: 'improves .55 to .75', history: { skills: 12, answers: 900, chance: createLine(0.55, 0.75) } },
  {
    name: 'improved, then constant .75',
    history: { skills: 12, answers: 900, chance: (at) => Math.min(0.75, 0.45 + 0.9 * at) },
  },
  { name: 'new, 60 answers, .60', history: { skills: 6, answers: 60, chance: constant(0.6) } },
  {
    name: 'four answers, one correct',
    history: { skills: 2, answers: 4, chance: constant(0.25), isExact: true },
  },
];

const beforePause = 600;
const createPauseCase = (answers: number, level: number): History => ({
  skills: 12,
  answers: beforePause + answers,
  chance: (_, answer) => (answer < beforePause ? 0.75 : level),
  ...(answers === 0 ? { idleDays: 45 } : { pause: { answer: beforePause, days: 45 } }),
});

export const pauseCases: readonly { readonly name: string; readonly history: History }[] = [
  { name: 'before the pause, .75', history: { ...createPauseCase(0, 0), idleDays: 0 } },
  { name: 'stopped 45 days ago', history: createPauseCase(0, 0) },
  ...[10, 20].flatMap((answers) => [
    { name: `${answers} answers later, .75`, history: createPauseCase(answers, 0.75) },
    { name: `${answers} answers later, .55`, history: createPauseCase(answers, 0.55) },
  ]),
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

const defaultPerDay = 15;
export const msPerAnswer = 180_000;
const start = Date.UTC(2026, 0, 5, 9);
const recentAnswers = 100;

export function computeAnswerTime(
  { perDay = defaultPerDay, pause }: Pick<History, 'perDay' | 'pause'>,
  i: number,
): number {
  const pauseDays = pause !== undefined && i >= pause.answer ? pause.days : 0;
  return start + dayMs * (Math.floor(i / perDay) + pauseDays) + msPerAnswer * (i % perDay);
}

export function runHistory({ model, knownSkills, drawSkills }: Tenant, history: History, seed: number) {
  const draws = createDraws(seed);
  const askers = drawSkills(history.skills, draws);
  const learner = createServedLearner(model, knownSkills);
  const outcomes = drawOutcomes(history, draws);
  const predicted = outcomes.map((isCorrect, i) => {
    const ask = history.isExact ? askers[i % askers.length] : draws.pick(askers);
    const timeSpentSeconds = history.seconds ?? Math.max(10, Math.round(draws.normal(40, 10)));
    const outcome = { isCorrect, occurredAt: computeAnswerTime(history, i), timeSpentSeconds };
    return learner.count((ask as (typeof askers)[number])(), outcome).conditions.pCorrect;
  });
  const now = computeAnswerTime(history, history.answers - 1) + dayMs * (history.idleDays ?? 0) + msPerAnswer;
  const { figures, advice } = summarize(learner.subjectAt(now));
  const latest = {
    observed: mean(outcomes.slice(-recentAnswers).map(Number)),
    predicted: mean(predicted.slice(-recentAnswers)),
  };
  return { figures: { ...latest, ...figures }, advice };
}

function drawOutcomes({ answers, chance, isExact }: History, draws: Draws): boolean[] {
  if (isExact) return shuffle(indices(answers), draws).map((i) => i < Math.round(answers * chance(0, 0)));
  return indices(answers).map((i) => draws.chance(chance(i / (answers - 1), i)));
}

function summarize(subject: ForecastSubject) {
  const forecastIn = (days: number) => forecastLearner(subject, { days, level: 0.8, goal: null });
  const forecast = forecastIn(defaultForecastDays);
  const { goal, neededRate, measures } = forecast;
  const today = computeToday(subject);
  const context = { ...subject, today, measures, goal: { ...goal, neededRate }, locale: 'en' as const };
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
      growth: computeGrowth(subject.learner.trend, subject.learner.attempts, subject.model.growth).practised,
    },
    advice: buildStudyAdvice(context),
  };
}
