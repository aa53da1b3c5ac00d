/** Deterministic. */
import type { Answer } from '../../src/domain/base/common.js';
import { type ItemModel, type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { indices } from '../../src/lists.js';
import { createServedLearner, type Step } from '../simulation/served-learner.js';

export const start = Date.UTC(2026, 0, 1);

export const sampleItem: ItemModel = {
  answers: 40,
  right: 25,
  expected: 27.5,
  terms: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
  before: emptyRelatedTerms,
  abilityOffset: 0.2,
};

export const createAnswer = (i: number): Answer => ({
  isCorrect: (i * 7919) % 10 < 6,
  occurredAt: start + 40_000 * i + 86_400_000 * Math.floor(i / 200),
  questionDifficulty: i % 3 === 0 ? null : ((i * 31) % 60) / 10 - 3,
  timeSpentSeconds: 5 + ((i * 13) % 90),
  confidenceScore: i % 2 === 0 ? null : 1 + (i % 5),
});

/** @param itemCount 0: answers without items */
function replayAnswers(answers: readonly Answer[], model: TenantModel, skillCount: number, itemCount = 0) {
  const { count, states } = createServedLearner(model, skillCount);
  const steps = answers.map((answer, i) => {
    const question = { skillId: `skill-${i % skillCount}`, difficulty: answer.questionDifficulty };
    const asked =
      itemCount === 0 ? { itemId: null, item: null } : { itemId: `item-${i % itemCount}`, item: sampleItem };
    return count({ ...question, ...asked }, answer);
  });
  return { steps, ...states() };
}

export const generateSteps = (answers: number): Step[] =>
  replayAnswers(indices(answers).map(createAnswer), unfittedModel, 20, 200).steps;

export type GeneratedLearner = ReturnType<typeof generateLearner>;

export function generateLearner(answers: readonly Answer[], skillCount: number, model: TenantModel) {
  const { learner, skills } = replayAnswers(answers, model, skillCount);
  return { learner: { ...learner, baselineTotal: 1000 }, skills };
}

export function cycleThrough<T>(values: readonly T[]): () => T {
  let next = 0;
  return () => {
    const value = values[next] as T;
    next = next + 1 === values.length ? 0 : next + 1;
    return value;
  };
}
