/** A panel of made-up learners: what a teacher would know of each is in the name, and nothing is random but the order. */
import { seeded } from './random.js';

/** Answers of one learner within one day. */
interface Session {
  readonly daysAgo: number;
  readonly skills: readonly string[];
  readonly answers: number;
  /** Share of right ones, 0 to 1: met exactly, in an order drawn by the learner's name. */
  readonly share: number;
  readonly seconds?: number;
}

export interface Person {
  readonly name: string;
  readonly sessions: readonly Session[];
}

const numbered = (stem: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${stem}-${i + 1}`);

export const mathSkills = numbered('algebra', 10);
export const readingSkills = numbered('reading', 10);

const few = [...mathSkills.slice(0, 4), ...readingSkills.slice(0, 4)];
const all = [...mathSkills, ...readingSkills];

/** The same on each of so many days, the newest `until` days ago and `every` days between two. */
const days = (count: number, session: Omit<Session, 'daysAgo'>, until = 0, every = 1): Session[] =>
  Array.from({ length: count }, (_, i) => ({ ...session, daysAgo: until + every * (count - 1 - i) }));

export const panel: readonly Person[] = [
  { name: 'beginner, 3 of 4 right', sessions: days(1, { skills: few.slice(3, 5), answers: 4, share: 0.75 }) },
  { name: 'one right answer', sessions: days(1, { skills: few, answers: 1, share: 1 }) },
  { name: 'strong', sessions: days(12, { skills: few, answers: 10, share: 0.9 }, 0, 2) },
  { name: 'weak', sessions: days(12, { skills: few, answers: 10, share: 0.3 }, 0, 2) },
  { name: 'average', sessions: days(20, { skills: few, answers: 10, share: 0.55 }) },
  {
    name: 'guesser',
    sessions: days(10, { skills: few, answers: 10, share: 0.25, seconds: 1.5 }),
  },
  { name: 'crammer on one skill', sessions: days(1, { skills: few.slice(0, 1), answers: 40, share: 0.95 }) },
  { name: 'stopped two months ago', sessions: days(15, { skills: few, answers: 10, share: 0.8 }, 60) },
  {
    name: 'improver',
    sessions: Array.from({ length: 20 }, (_, i) => ({
      daysAgo: 19 - i,
      skills: few,
      answers: 10,
      share: 0.4 + (i >> 1) * 0.05,
    })),
  },
  { name: 'one section only', sessions: days(10, { skills: mathSkills, answers: 10, share: 0.75 }) },
  { name: 'few of many', sessions: days(10, { skills: few.slice(3, 5), answers: 6, share: 0.75 }) },
  { name: 'everything wrong', sessions: days(4, { skills: few, answers: 10, share: 0 }) },
  { name: 'everything right', sessions: days(6, { skills: all, answers: 10, share: 1 }) },
  { name: 'long history', sessions: days(150, { skills: all, answers: 8, share: 0.7 }) },
  { name: '300 answers on one day', sessions: days(1, { skills: all, answers: 300, share: 0.8 }) },
  { name: 'stuck on one skill', sessions: days(10, { skills: few.slice(0, 1), answers: 6, share: 0.4 }) },
];

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

export interface PanelEvent {
  readonly user_id: string;
  readonly skill_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
  readonly occurred_at: string;
}

/**
 * What the learner answered, oldest first. Answers are a minute apart, or as much closer as it takes that no session
 * begins before midnight: one that is cut in two is two days of practice, with another momentum.
 *
 * @param now Unix milliseconds: the newest answers are a minute old at most
 */
export function eventsOf({ name, sessions }: Person, now: number): PanelEvent[] {
  const random = seeded([...name].reduce((sum, letter) => 31 * sum + letter.charCodeAt(0), 7) | 0);
  let place = 0;
  return sessions.flatMap(({ daysAgo, skills, answers, share, seconds = 50 }) => {
    const right = Math.round(answers * share);
    const outcomes = shuffled(
      Array.from({ length: answers }, (_, i) => i < right),
      random,
    );
    const stepMs = Math.min(minuteMs, (now % dayMs) / (answers + 1));
    return outcomes.map((isCorrect, i) => ({
      user_id: name,
      skill_id: skills[place++ % skills.length] as string,
      is_correct: isCorrect,
      time_spent_seconds: Math.round(seconds * (0.6 + 0.8 * random())),
      occurred_at: new Date(now - daysAgo * dayMs - (answers - i) * stepMs).toISOString(),
    }));
  });
}

function shuffled<T>(items: T[], random: () => number): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}

/**
 * Answers of a school of 300 whose learners differ in ability and a little by skill, and get better with practice: rows as
 * if drained. Nobody masters in one step, so that a fit finds what it would find of people.
 */
export function schoolAnswers(tenant: string, perSkill: number): object[] {
  const random = seeded(300);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const skills = [...mathSkills, ...readingSkills].map((skillId) => ({
    skillId,
    difficulty: 0.5 * normal(),
  }));
  const start = Date.UTC(2026, 0, 15, 12) / 1000;
  return Array.from({ length: 300 }, (_, learner) => {
    const ability = normal();
    return skills.flatMap(({ skillId, difficulty }, skill) => {
      const own = ability + 0.5 * normal() - difficulty;
      return Array.from({ length: perSkill }, (_, i) => ({
        tenant,
        user_id: `learner-${learner}`,
        skill_id: skillId,
        is_correct: random() < 0.2 + 0.8 / (1 + Math.exp(-1.2 * (own + 0.05 * i))) ? 1 : 0,
        time_spent_seconds: 20 + Math.floor(60 * random()),
        occurred_at: start + 60 * (perSkill * skill + i),
        received_at: start,
        learner_seq: perSkill * skill + i + 1,
      }));
    });
  }).flat();
}
