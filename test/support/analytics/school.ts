/**
 * A small school whose rows are known, for the queries of docs/analytics.md. Nothing in it follows a model: learners, items
 * and skills differ by numbers of a seed, so that no two figures are equal by chance and each case of a query occurs.
 */
import type { ServedForecast } from '../../../src/contracts/journal/journal.js';
import { indices } from '../../../src/lists.js';
import { attemptRow } from '../builders/attempt-rows.js';
import { servedForecast } from '../builders/journal-rows.js';
import { seeded } from '../builders/random.js';

export type SchoolAnswer = ReturnType<typeof attemptRow>;

export const dayMs = 86_400_000;
export const tenant = 'demo';
/** A Monday. */
const begin = Date.UTC(2025, 2, 3);
const days = 119;
/** The last day with answers. */
export const today = begin + (days - 1) * dayMs;
/** When version 1 of the model came into force, and version 2. */
const fittedAt = [begin + 60 * dayMs, begin + 100 * dayMs] as const;

const skills = ['circles', 'commas', 'inferences', 'linear-equations', 'linear-functions'] as const;
const sectionOf = (skillId: string): 'math' | 'rw' =>
  skillId === 'commas' || skillId === 'inferences' ? 'rw' : 'math';
/** Skills that the first fit gave parameters; the second gave them to linear equations again. */
const fitted: readonly string[] = ['commas', 'linear-equations', 'linear-functions'];

const learners = Array.from({ length: 26 }, (_, i) => `demo-${String(i + 1).padStart(3, '0')}`);

/** What is kept of a learner from answer to answer. */
interface Learning {
  readonly userId: string;
  readonly number: number;
  seq: number;
  readonly skills: Map<string, { readonly mastery: number; readonly count: number; readonly at: number }>;
}

function schoolAnswers(): SchoolAnswer[] {
  const random = seeded(22);
  return learners.flatMap((userId, number) => {
    const learning: Learning = { userId, number, seq: 0, skills: new Map() };
    // They begin in three weeks or in the month after; every fifth stops half way, every seventh pauses for a month.
    const first = (number % 4 === 3 ? 35 : 7 * (number % 4)) + (number % 3);
    const stop = number % 5 === 4 ? 75 + number : days;
    return indices(stop - first).flatMap((i) => {
      const day = first + i;
      const pauses = number % 7 === 3 && day > 65 && day < 100;
      const comes = random() < 0.15 + 0.025 * (number % 12);
      return pauses || !comes ? [] : answersOfDay(learning, begin + day * dayMs, random);
    });
  });
}

function answersOfDay(learning: Learning, day: number, random: () => number): SchoolAnswer[] {
  const count = random() < 0.12 ? 25 : 1 + Math.floor(random() * 9);
  const first = Math.floor(random() * skills.length);
  const hour = 5 + Math.floor(random() * 16);
  return indices(count).flatMap((i) => {
    const skillId = skills[(first + (i > 5 ? 1 : 0)) % skills.length] as string;
    const answer = answerOf(learning, skillId, day + hour * 3_600_000 + i * 45_000, random);
    // Some answers come twice, under two ids.
    if (random() > 0.01) return [answer];
    learning.seq += 1;
    const again = { learnerSeq: learning.seq, occurredAt: answer.occurredAt + 4000, eventId: null };
    return [answer, { ...answer, ...again }];
  });
}

function answerOf(
  learning: Learning,
  skillId: string,
  arrivedAt: number,
  random: () => number,
): SchoolAnswer {
  const occurredAt = arrivedAt - delayOf(random);
  const place = skills.indexOf(skillId as (typeof skills)[number]);
  const last = learning.skills.get(skillId) ?? { mastery: 0.3, count: 0, at: occurredAt };
  const idle = Math.max(0, Math.floor((occurredAt - last.at) / dayMs));
  const before = Math.max(0.05, last.mastery - 0.004 * Math.min(idle, 40));
  const item = 1 + Math.floor(random() * 6);
  const isRapid = random() < (learning.number % 6 === 1 ? 0.25 : 0.04);
  // Item 4 is missed by those who know the skill.
  const chance = isRapid ? 0.25 : item === 4 ? 0.85 - 0.6 * before : 0.45 + 0.5 * before - 0.03 * item;
  const isCorrect = random() < chance;
  const after = isCorrect ? before + (0.45 - 0.05 * place) * (0.99 - before) : before - 0.1 * before;
  const count = last.count + 1;
  learning.skills.set(skillId, { mastery: after, count, at: occurredAt });
  learning.seq += 1;
  const plateauDetected = count > 12 && after < 0.8 && random() < 0.5;
  return attemptRow(learning.number * 10_000 + learning.seq, {
    ...{ tenant, userId: learning.userId, skillId, isCorrect, isRapid, occurredAt, plateauDetected },
    itemId: random() < 0.02 ? null : `${skillId}-${item}`,
    timeSpentSeconds: timeOf(isRapid, random),
    confidenceScore: random() < 0.4 ? null : 1 + Math.floor(random() * 2.5 + 2.4 * before),
    receivedAt: arrivedAt + 2000,
    learnerSeq: learning.seq,
    masteryBefore: before,
    masteryAfter: after,
    pCorrect: 0.25 + 0.6 * before,
    parameters: { pInit: 0.3, pLearn: 0.1, pGuess: 0.2 + place / 50, pSlip: 0.1, pForget: 0 },
    version: versionOf(skillId, occurredAt),
    section: sectionOf(skillId),
  });
}

/** Some answers come behind later ones. */
function delayOf(random: () => number): number {
  if (random() > 0.03) return 0;
  return [1_200_000, 20_000_000, 3 * dayMs, 11 * dayMs][Math.floor(4 * random())] ?? 0;
}

function timeOf(isRapid: boolean, random: () => number): number | null {
  if (isRapid) return 1 + random();
  const kind = random();
  if (kind < 0.05) return null;
  return kind < 0.06 ? 4000 : Math.round(10 + 80 * random());
}

function versionOf(skillId: string, at: number): number {
  if (skillId === 'linear-equations' && at >= fittedAt[1]) return 2;
  return fitted.includes(skillId) && at >= fittedAt[0] ? 1 : 0;
}

/** Each Sunday, for 7 and for 30 days, of every learner who had answers by then. */
function schoolForecasts(answers: readonly SchoolAnswer[]): ServedForecast[] {
  const random = seeded(30);
  const { accuracy } = servedForecast();
  return learners.flatMap((userId, number) => {
    const own = answers.filter((answer) => answer.userId === userId);
    return Array.from({ length: 16 }, (_, week) => begin + (7 * week + 6) * dayMs + 36_000_000).flatMap(
      (madeAt) => {
        const seq = own.filter(({ occurredAt }) => occurredAt < madeAt).length;
        const current = 900 + 10 * Math.floor(random() * 40);
        return (seq === 0 ? [] : [7, 30]).map((days) =>
          servedForecast({
            ...{ tenant, userId, madeAt: madeAt + days, days, learnerSeq: seq },
            current: { math: 400, rw: current - 400, total: current },
            ...(goalOf(number) === null
              ? { targetScore: null, goalProbability: null }
              : { targetScore: goalOf(number), goalProbability: random() }),
            accuracy: { ...accuracy, expected: 0.45 + 0.3 * random() },
          }),
        );
      },
    );
  });
}

const goalOf = (number: number): number | null => (number % 3 === 2 ? null : 1000 + 20 * (number % 10));

/** Two changes of each goal; that of the first learner is deleted. */
const schoolGoals = () =>
  learners.flatMap((userId, number) => {
    const targetScore = goalOf(number);
    const targetDate = number % 4 === 1 ? null : number % 2 === 0 ? '2025-06-15' : '2025-09-01';
    const change = { tenant, userId, targetDate };
    if (targetScore === null) return [];
    return [
      { at: begin + 20 * dayMs, change: { ...change, targetScore: targetScore - 50 } },
      { at: begin + 40 * dayMs, change: { ...change, targetScore: number === 0 ? null : targetScore } },
    ];
  });

const schoolCatalogue = () =>
  skills.map((skillId, i) => ({
    at: begin + i,
    change: {
      ...{ tenant, skillId, name: `The skill ${skillId}`, section: sectionOf(skillId) },
      ...{ weight: 1 + i / 2, parameters: null },
    },
  }));

const schoolVersions = () =>
  fittedAt.map((at, i) => ({
    ...{ tenant, change: i + 1, version: i + 1, based_on: i, action: 'fit', published_at: at },
    ...{ model: '', report: '' },
  }));

const schoolParameters = () =>
  [1, 2].flatMap((version) =>
    skills.map((skill_id, i) => {
      const parameters_version =
        skill_id === 'linear-equations' ? version : fitted.includes(skill_id) ? 1 : 0;
      return {
        ...{ tenant, version, skill_id, parameters_version },
        source: parameters_version === 0 ? 'default' : 'fitted',
        ...{ p_init: 0.3 + i / 50, p_learn: 0.1 + version / 40, p_guess: 0.2 - i / 90, p_slip: 0.1 + i / 70 },
        ...{ learners: 20 + i, answers: 400 + 10 * i },
        ...{
          old_log_loss: 0.6 - i / 100,
          new_log_loss: parameters_version === version ? 0.58 - i / 200 : 0.61,
        },
        published: parameters_version === version ? 1 : 0,
      };
    }),
  );

export interface School {
  readonly answers: readonly SchoolAnswer[];
  readonly forecasts: readonly ServedForecast[];
  readonly goals: ReturnType<typeof schoolGoals>;
  readonly catalogue: ReturnType<typeof schoolCatalogue>;
  readonly versions: ReturnType<typeof schoolVersions>;
  readonly parameters: ReturnType<typeof schoolParameters>;
}

export function smallSchool(): School {
  const answers = schoolAnswers();
  return {
    answers,
    forecasts: schoolForecasts(answers),
    goals: schoolGoals(),
    catalogue: schoolCatalogue(),
    versions: schoolVersions(),
    parameters: schoolParameters(),
  };
}
