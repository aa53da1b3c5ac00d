import { dayMs } from '../../../src/domain/base/common.js';
import { seeded } from './random.js';

export interface MadeAnswer {
  readonly user_id: string;
  readonly skill_id?: string;
  readonly skill_ids?: readonly string[];
  readonly item_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
  readonly occurred_at: string;
}

interface Habit {
  /** Days with answers: from `first` to `last` days ago, every `step` days. */
  readonly days: readonly [first: number, last: number, step: number];
  readonly perDay: number;
  /** Probability of a correct answer in the last 28 days, and before. */
  readonly right: readonly [now: number, before: number];
  readonly seconds?: number;
}

const classSkills = ['algebra', 'ratios', 'geometry', 'reading'];

/** A class of learners whom every teacher knows. */
export const habits: Readonly<Record<string, Habit>> = {
  beginner: { days: [10, 0, 1], perDay: 3, right: [0.5, 0.5] },
  strong: { days: [55, 0, 2], perDay: 8, right: [0.93, 0.93] },
  improves: { days: [55, 0, 2], perDay: 8, right: [0.85, 0.4] },
  declines: { days: [55, 0, 2], perDay: 8, right: [0.35, 0.85] },
  guesses: { days: [55, 0, 2], perDay: 8, right: [0.25, 0.25], seconds: 1 },
  stopped: { days: [55, 9, 2], perDay: 8, right: [0.7, 0.7] },
  stuck: { days: [55, 0, 2], perDay: 8, right: [0.5, 0.5] },
  four: { days: [3, 3, 1], perDay: 4, right: [0.5, 0.5] },
};

/** At noon, or now for today, because noon may be in the future. One answer in ten asks two skills. */
export function makeAnswers(now: number): MadeAnswer[] {
  const random = seeded(7);
  const answerOf = (
    user_id: string,
    daysAgo: number,
    n: number,
    { right, seconds = 40 }: Habit,
  ): MadeAnswer => {
    const skill = classSkills[n % classSkills.length] as string;
    const skills = n % 10 === 9 ? { skill_ids: [skill, 'mixed'] } : { skill_id: skill };
    const item = Math.floor(4 * random());
    // Item 0 is hard.
    const chance = (right[daysAgo < 28 ? 0 : 1] as number) - (item === 0 ? 0.15 : -0.05);
    const noon = (Math.floor(now / dayMs) - daysAgo + 0.5) * dayMs;
    return {
      ...{ user_id, ...skills, item_id: `${skill}-${item}`, is_correct: random() < chance },
      ...{ time_spent_seconds: seconds, occurred_at: new Date(Math.min(now, noon)).toISOString() },
    };
  };
  return Object.entries(habits).flatMap(([user_id, habit]) => {
    const [first, last, step] = habit.days;
    const answers: MadeAnswer[] = [];
    for (let daysAgo = first; daysAgo >= last; daysAgo -= step)
      for (let i = 0; i < habit.perDay; i++) answers.push(answerOf(user_id, daysAgo, answers.length, habit));
    return answers;
  });
}
