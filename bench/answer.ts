/**
 * What one answer costs in the models alone, in one thread: what it is counted with, prediction included, and the
 * update of all states. One learner's answers on 20 skills and 200 items, with times, confidence and difficulty.
 *
 * Run: node dist/bench/answer.js [answers]
 */
import type { AnswerStates } from '../src/domain/answer-states.js';
import { type Conditions, conditionsFor } from '../src/domain/conditions.js';
import type { RememberedItem } from '../src/domain/item-window.js';
import { applyAnswer, newLearner, newSkill } from '../src/domain/mastery.js';
import { defaultParameters } from '../src/domain/params.js';
import type { ItemTrace } from '../src/domain/prediction/traces.js';
import { type ItemModel, unfittedModel } from '../src/domain/tenant-model.js';
import type { Answer, SkillState } from '../src/domain/types.js';

const item: ItemModel = {
  answers: 40,
  right: 25,
  expected: 27.5,
  terms: [0.1, 0.1, 0.1],
  abilityOffset: 0.2,
};
const start = Date.UTC(2026, 0, 1);

/** The i-th answer: one every 40 s, now and then a day of rest. */
const answerAt = (i: number): Answer => ({
  isCorrect: (i * 7919) % 10 < 6,
  occurredAt: start + 40_000 * i + 86_400_000 * Math.floor(i / 200),
  questionDifficulty: i % 3 === 0 ? null : ((i * 31) % 60) / 10 - 3,
  timeSpentSeconds: 5 + ((i * 13) % 90),
  confidenceScore: i % 2 === 0 ? null : 1 + (i % 5),
});

/** One answer on its way: the states that it meets, and what it is counted with. */
interface Step {
  readonly skillId: string;
  readonly states: AnswerStates;
  readonly answer: Answer;
  readonly conditions: Conditions;
}

function stepsOf(answers: number): Step[] {
  const skills = new Map<string, SkillState>();
  const items = new Map<number, RememberedItem<ItemTrace>>();
  let learner = newLearner;
  return Array.from({ length: answers }, (_, i) => {
    const skillId = `skill-${i % 20}`;
    const skill = skills.get(skillId) ?? newSkill(defaultParameters);
    const states = { learner, skill, item: items.get(i % 200) };
    const answer = answerAt(i);
    const conditions = conditionsFor(unfittedModel, skillId, item, states, answer);
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (effect.item) items.set(i % 200, effect.item);
    return { skillId, states, answer, conditions };
  });
}

const repeats = 100;

/** @returns nanoseconds of CPU per answer: median of several rounds */
function measure(steps: readonly Step[], work: (step: Step) => unknown): number {
  const rounds = Array.from({ length: 15 }, () => {
    const since = process.cpuUsage();
    for (let i = 0; i < repeats; i++) for (const step of steps) work(step);
    const { user, system } = process.cpuUsage(since);
    return (1000 * (user + system)) / (repeats * steps.length);
  });
  return Math.round(rounds.sort((a, b) => a - b)[7] as number);
}

/** Few enough to stay in the processor's caches, as the states of a learner who is answering do. */
const steps = stepsOf(Number(process.argv[2] ?? 1000));
const predicted = measure(steps, ({ skillId, states, answer }) =>
  conditionsFor(unfittedModel, skillId, item, states, answer),
);
const updated = measure(steps, ({ states, answer, conditions }) => applyAnswer(states, answer, conditions));
process.stdout.write(`ns of CPU per answer, medians of 15 rounds of ${repeats * steps.length} answers
  update: BKT, forgetting, plateau, pace, abilities, item   ${updated}
  conditions: prediction, difficulty, norms                 ${predicted}
`);
