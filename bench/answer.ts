/**
 * What one answer costs in the models alone, in one thread: what it is counted with (prediction included), and the
 * update of all states. Answers in sittings of several skills, with times, confidence, difficulty and items.
 *
 * Run: node dist/bench/answer.js [answers]
 */
import { conditionsFor } from '../src/domain/conditions.js';
import type { RememberedItem } from '../src/domain/item-window.js';
import { applyAnswer, newLearner, newSkill } from '../src/domain/mastery.js';
import type { ItemTrace } from '../src/domain/prediction/traces.js';
import { type ItemModel, skillModelOf, unfittedModel } from '../src/domain/tenant-model.js';
import type { Answer, SkillState } from '../src/domain/types.js';

const skillIds = Array.from({ length: 20 }, (_, i) => `skill-${i}`);
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

/** Counts that many answers of one learner, as the workers do. @returns nanoseconds of CPU per answer */
function measure(answers: number): number {
  const skills = new Map<string, SkillState>();
  const items = new Map<number, RememberedItem<ItemTrace>>();
  let learner = newLearner;
  const since = process.cpuUsage();
  for (let i = 0; i < answers; i++) {
    const skillId = skillIds[i % skillIds.length] as string;
    const skill = skills.get(skillId) ?? newSkill(skillModelOf(unfittedModel, skillId).parameters);
    const states = { learner, skill, item: items.get(i % 200) };
    const answer = answerAt(i);
    const conditions = conditionsFor(unfittedModel, skillId, item, states, answer);
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (effect.item) items.set(i % 200, effect.item);
  }
  const { user, system } = process.cpuUsage(since);
  return (1000 * (user + system)) / answers;
}

const answers = Number(process.argv[2] ?? 200_000);
const rounds = Array.from({ length: 7 }, () => measure(answers)).sort((a, b) => a - b);
const [least, median, most] = [rounds[0], rounds[3], rounds[6]].map((ns) => Math.round(ns as number));
process.stdout.write(
  `${median} ns of CPU per answer (${least} to ${most} over 7 rounds of ${answers} answers)\n`,
);
