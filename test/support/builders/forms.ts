/** A log with times in which a learner's chance changes with practice and from day to day. */
import type { AnswerLog } from '../../../src/domain/base/answer-log.js';
import { dayMs, sigmoid } from '../../../src/domain/base/common.js';
import { answerLog, type LoggedAnswer } from './answer-logs.js';
import { seeded } from './random.js';

const begin = Date.UTC(2024, 0, 1);
const logDays = 300;
/** Learners begin within these days. */
const beginDays = 220;

/**
 * Standard deviations in logits after so many answers, of one day's form and of a day's lasting change. Beginners have good
 * and bad days; practised learners have none, but change lastingly.
 */
const formSd = (history: number): number => 1.1 / (1 + history / 25);
const changeSd = (history: number): number => (0.16 * history) / (history + 60);

export function formLog({ learners, seed }: { learners: number; seed: number }): AnswerLog {
  const random = seeded(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return answerLog(
    1,
    Array.from({ length: learners }, () => practise(random, normal)),
  );
}

/** A learner practises on some days until it stops, with a few answers in a row on each. */
function practise(random: () => number, normal: () => number): LoggedAnswer[] {
  const answers: LoggedAnswer[] = [];
  const [activity, answersPerDay, stops] = [0.15 + 0.5 * random(), 2 + 8 * random(), 0.002 + 0.03 * random()];
  let ability = 0.6 + 0.8 * normal();
  for (let day = Math.floor(beginDays * random()); day < logDays && random() > stops; day++) {
    if (answers.length > 0) ability += changeSd(answers.length) * normal();
    if (random() > activity) continue;
    const chance = sigmoid(ability + formSd(answers.length) * normal());
    const count = 1 + Math.floor(2 * answersPerDay * random());
    for (let i = 0; i < count; i++)
      answers.push({ skill: 0, correct: random() < chance, at: begin + day * dayMs + 20_000 * (1500 + i) });
  }
  return answers;
}
