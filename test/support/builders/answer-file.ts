/** Files of made-up answers, the same in every run. */
import { seeded } from './random.js';

export interface MadeAnswer {
  readonly user: string;
  readonly skill: string;
  readonly item: string;
  readonly correct: 0 | 1;
  /** Seconds since 1970. */
  readonly ts: number;
  readonly seconds: number;
  /** A rough estimate of the item's difficulty. */
  readonly difficulty: number;
  readonly order: number;
  readonly fold: number;
}

const skills = 6;
const itemsOfSkill = 8;

/** Learners and items differ, and learners improve with practice. Learner l is in fold 1 + l % 5. */
export function makeAnswers(learners: number, answersOfEach: number, seed = 1): MadeAnswer[] {
  const random = seeded(seed);
  const spread = (width: number): number => (random() - 0.5) * width;
  const difficulty = Array.from({ length: skills * itemsOfSkill }, () => spread(3));
  return Array.from({ length: learners }, (_, learner) => {
    const ability = spread(4);
    const practice = new Array<number>(skills).fill(0);
    return Array.from({ length: answersOfEach }, (_, i): MadeAnswer => {
      const skill = Math.floor(random() * skills);
      const item = skill * itemsOfSkill + Math.floor(random() * itemsOfSkill);
      const logit = ability + 0.15 * (practice[skill] as number) - (difficulty[item] as number);
      practice[skill] = (practice[skill] as number) + 1;
      return {
        ...{
          user: `u${learner}`,
          skill: `s${skill}`,
          item: `i${item}`,
          order: i + 1,
          fold: 1 + (learner % 5),
        },
        correct: random() < 1 / (1 + Math.exp(-logit)) ? 1 : 0,
        ts: 1_700_000_000 + learner * 1000 + i * 90 + Math.floor(i / 10) * 86_400,
        seconds: Math.round(2 + 80 * random()),
        difficulty: Math.round(2 * (difficulty[item] as number)) / 2,
      };
    });
  }).flat();
}

/** The field of each column. */
const columns = {
  user_id: 'user',
  skill_id: 'skill',
  correct: 'correct',
  item_id: 'item',
  ts: 'ts',
  order: 'order',
  fold: 'fold',
  response_time_s: 'seconds',
  question_difficulty: 'difficulty',
} as const;

export type MadeColumn = keyof typeof columns;

export const recordsOf = (answers: readonly MadeAnswer[], names: readonly MadeColumn[]) =>
  answers.map((answer) => Object.fromEntries(names.map((name) => [name, answer[columns[name]]])));

/** CSV with a header. */
export function csvOf(answers: readonly MadeAnswer[], names: readonly MadeColumn[]): string {
  const rows = answers.map((answer) => names.map((name) => answer[columns[name]]).join());
  return `${[names.join(), ...rows].join('\n')}\n`;
}
