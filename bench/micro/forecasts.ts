/**
 * Without Redis and messages. `forecast` is the model alone; `prediction` goes from stored records to JSON
 * and the journal row.
 */
import { bench, do_not_optimize, group } from 'mitata';
import { nextItemsConstants } from '../../src/domain/advice/advice-constants.js';
import { assessQuestions, explainCandidate, orderCandidates } from '../../src/domain/advice/next-items.js';
import { type Answer, dayMs } from '../../src/domain/base/common.js';
import { buildCatalogue, type SkillEntry } from '../../src/domain/catalogue/catalogue.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { buildSkillViews } from '../../src/domain/learner/skill-view.js';
import { assessLearner } from '../../src/domain/score/assessment.js';
import type { GoalSetting } from '../../src/domain/score/goal.js';
import { forecastLearner } from '../../src/domain/score/learner-forecast.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { indices } from '../../src/lists.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import { buildForecast } from '../../workers/forecast/compute-forecasts.js';
import { type GeneratedLearner, generateLearner, sampleItem } from './generated-learners.js';

const now = Date.UTC(2026, 5, 1, 12);
const options = { days: 90, level: 0.8, locale: 'en' } as const;

const goals: Readonly<Record<string, GoalSetting | null>> = {
  'no goal': null,
  'goal in reach': { targetScore: 1150, targetDate: null },
  'goal out of reach': { targetScore: 1600, targetDate: '2026-07-01' },
};

/** How a learner practised in the last 30 days. */
interface Habit {
  readonly skills: number;
  readonly answers: number;
  readonly everyDays: number;
}

const usualHabit: Habit = { skills: 40, answers: 2000, everyDays: 1 };
const otherHabits: readonly Habit[] = [
  { skills: 40, answers: 200, everyDays: 1 },
  { skills: 40, answers: 20_000, everyDays: 1 },
  { skills: 40, answers: 2000, everyDays: 5 },
  { skills: 500, answers: 20_000, everyDays: 1 },
];

export function forecastBenches(): void {
  group('a forecast', () => {
    forecastBench(usualHabit);
    for (const [name, goal] of Object.entries(goals)) predictionBench(usualHabit, name, goal);
    for (const habit of otherHabits) predictionBench(habit, 'no goal', null);
  });
  group('next items', () => {
    for (const skills of [50, 1000]) nextItemsBench(skills);
  });
}

function nextItemsBench(skills: number): void {
  const model = createModel(skills + 20);
  const made = generatePractisedLearner({ skills, answers: 4 * skills, everyDays: 1 }, model);
  const subject = {
    ...{ model, now, learner: made.learner, registeredSkills: skills + 20 },
    views: buildSkillViews(made.skills, model, now),
  };
  const questions = Array.from({ length: 1000 }, (_, i) => ({
    skillIds: [`skill-${(i * 7) % skills}`] as const,
    itemId: `item-${i}`,
    questionDifficulty: i % 2 === 0 ? null : (i % 7) - 3,
    item: i % 4 === 0 ? null : { ...sampleItem, right: 10 + (i % 25) },
    itemRecord:
      i % 5 === 0
        ? { generation: 0, trace: { ...newItemTrace, right: 1, at: now / 1000 - 60 * i } }
        : undefined,
  }));
  const { target } = nextItemsConstants;
  bench(`next items: 1,000 items of ${skills} skills`, () => {
    const standing = assessLearner(subject);
    const ordered = orderCandidates(assessQuestions(standing, questions), target.start, 1000);
    do_not_optimize(ordered.map((candidate) => explainCandidate(candidate, target.start, standing)));
  });
}

const formatHabit = ({ skills, answers, everyDays }: Habit): string =>
  `${skills} skills, ${answers} answers${everyDays === 1 ? '' : `, every ${everyDays} days`}`;

function forecastBench(habit: Habit): void {
  const model = createModel(habit.skills + 20);
  const { learner, skills } = generatePractisedLearner(habit, model);
  const views = buildSkillViews(skills, model, now);
  const subject = { learner, views, model, registeredSkills: habit.skills + 20, now };
  bench(`forecast: ${formatHabit(habit)}`, () => {
    do_not_optimize(forecastLearner(subject, { ...options, goal: null }));
  });
}

function predictionBench(habit: Habit, goalName: string, goal: GoalSetting | null): void {
  const model = createModel(habit.skills + 20);
  const stored = encodeRecords(generatePractisedLearner(habit, model));
  bench(`prediction: ${formatHabit(habit)}, ${goalName}`, () => {
    do_not_optimize(predictStored(stored, model, goal));
  });
}

const createEntry = (i: number): SkillEntry => ({
  name: `Skill ${i}`,
  section: i % 3 === 2 ? null : i % 3 === 0 ? 'math' : 'rw',
  weight: 1 + (i % 4),
  parameters: null,
  revision: 1,
  updatedAt: now,
});

const createModel = (skills: number): TenantModel => ({
  ...unfittedModel,
  catalogue: buildCatalogue(
    1,
    new Map(Array.from({ length: skills }, (_, i) => [`skill-${i}`, createEntry(i)])),
  ),
});

const generatePractisedLearner = (habit: Habit, model: TenantModel): GeneratedLearner => {
  const answers = indices(habit.answers).map((i) => createAnswer(habit, i));
  return generateLearner(answers, habit.skills, model);
};

function createAnswer({ answers, everyDays }: Habit, i: number): Answer {
  const day = everyDays * Math.floor(((30 / everyDays) * i) / answers);
  return {
    isCorrect: (i * 7919) % 10 < 6,
    occurredAt: now - 30 * dayMs + day * dayMs + i,
    questionDifficulty: null,
    timeSpentSeconds: 20 + (i % 60),
    confidenceScore: 3,
  };
}

const encodeRecords = ({ learner, skills }: GeneratedLearner) => ({
  learner: encodeLearner(learner),
  skills: [...skills].map(([skillId, skill]) => [skillId, encodeSkill(skill)] as const),
});

type StoredRecords = ReturnType<typeof encodeRecords>;

function predictStored(
  { learner, skills }: StoredRecords,
  model: TenantModel,
  goal: GoalSetting | null,
): string {
  const found = {
    learner: decodeLearner(learner),
    skills: skills.map(([skillId, record]) => [skillId, decodeSkill(record)] as const),
    goalRecord: goal && JSON.stringify({ v: 1, updatedAt: now, ...goal }),
  };
  const asked = { order: options, tenant: 'default', userId: 'learner' };
  const { row, result } = buildForecast(asked, found, { model, registeredSkills: 60 }, now);
  return row + result;
}
