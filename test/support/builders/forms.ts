/** Logs with times of learners whose chances change: with practice, with the day, with the years. */
import type { AnswerLog } from '../../../src/domain/base/answer-log.js';
import { sigmoid } from '../../../src/domain/base/common.js';
import { answerLog, type LoggedAnswer } from './answer-logs.js';
import { seeded } from './random.js';

/** All in logits; functions of the learner's answers so far. */
export interface FormPlan {
  readonly learners: number;
  /** The log's length, and the part of it over which learners begin. */
  readonly days: number;
  readonly beginOver: number;
  /** Ability at the beginning: its standard deviation; and what ln(1 + answers) adds, which differs by an sd. */
  readonly ability: number;
  readonly learning: number;
  readonly learningSd: number;
  /** Standard deviations of a day's form, of a learner's own and of everybody's, and of a day's lasting change. */
  readonly ownForm: (history: number) => number;
  readonly commonForm: number;
  readonly wander: (history: number) => number;
  /** What everybody's chance gains in 100 days. */
  readonly drift: number;
  readonly seed: number;
}

const dayMs = 86_400_000;
const begin = Date.UTC(2024, 0, 1);

const steady: Omit<FormPlan, 'learners' | 'seed'> = {
  days: 300,
  beginOver: 220,
  ability: 0.8,
  learning: 0,
  learningSd: 0,
  ownForm: () => 0.3,
  commonForm: 0,
  wander: () => 0.02,
  drift: 0,
};

/** What today's bands failed on: one plan for each reason. */
export const formPlans = {
  steady: {},
  /** Novices have good and bad days; the practised have none, but change for good: the longer, the farther. */
  interaction: {
    ownForm: (history: number) => 1.1 / (1 + history / 25),
    wander: (history: number) => (0.16 * history) / (history + 60),
  },
  /** The other way round: beginners move, the practised have days. */
  reversed: {
    ownForm: (history: number) => (0.9 * history) / (history + 80),
    wander: (history: number) => 0.2 / (1 + history / 20),
  },
  improving: { learning: 0.2, learningSd: 0.15, ownForm: () => 0.4 },
  drifting: { drift: 0.3, ownForm: () => 0.4 },
  badDays: { commonForm: 0.45, ownForm: (history: number) => 0.8 / (1 + history / 60) },
} satisfies Readonly<Record<string, Partial<FormPlan>>>;

export function formLog(
  kind: keyof typeof formPlans,
  { learners, seed }: Pick<FormPlan, 'learners' | 'seed'>,
): AnswerLog {
  const plan: FormPlan = { ...steady, ...formPlans[kind], learners, seed };
  const random = seeded(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const common = Array.from({ length: plan.days }, () => plan.commonForm * normal());
  return answerLog(
    1,
    Array.from({ length: learners }, () => practise(plan, common, random, normal)),
  );
}

/** Active on some days until the learner stops; a few answers on each, seconds apart. */
function practise(
  plan: FormPlan,
  common: readonly number[],
  random: () => number,
  normal: () => number,
): LoggedAnswer[] {
  const answers: LoggedAnswer[] = [];
  const [activity, aDay, stops] = [0.15 + 0.5 * random(), 2 + 8 * random(), 0.002 + 0.03 * random()];
  let ability = 0.6 + plan.ability * normal();
  const learning = plan.learning + plan.learningSd * normal();
  for (let day = Math.floor(plan.beginOver * random()); day < plan.days && random() > stops; day++) {
    if (answers.length > 0) ability += plan.wander(answers.length) * normal();
    if (random() > activity) continue;
    const form = plan.ownForm(answers.length) * normal() + (common[day] as number) + (plan.drift * day) / 100;
    const count = 1 + Math.floor(2 * aDay * random());
    for (let i = 0; i < count; i++) {
      const chance = sigmoid(ability + form + learning * Math.log1p(answers.length));
      answers.push({
        skill: 0,
        correct: random() < chance,
        at: begin + day * dayMs + 30_000_000 + 20_000 * i,
      });
    }
  }
  return answers;
}
