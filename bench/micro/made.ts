/** Made-up learners of the micro-benchmarks, the same in every run. */

import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { type Conditions, conditionsFor } from '../../src/domain/answer/conditions.js';
import type { Answer } from '../../src/domain/base/common.js';
import { defaultParameters } from '../../src/domain/base/params.js';
import { type ItemModel, type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { unrelated } from '../../src/domain/prediction/related.js';
import { askedOf } from '../../src/domain/tracing/course.js';
import {
  type AnswerStates,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../../src/domain/tracing/states.js';
import { indices } from '../../src/lists.js';

export const start = Date.UTC(2026, 0, 1);

export const item: ItemModel = {
  answers: 40,
  right: 25,
  expected: 27.5,
  terms: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
  before: unrelated,
  abilityOffset: 0.2,
};

/** The i-th answer: one every 40 s, now and then a day of rest. */
export const answerAt = (i: number): Answer => ({
  isCorrect: (i * 7919) % 10 < 6,
  occurredAt: start + 40_000 * i + 86_400_000 * Math.floor(i / 200),
  questionDifficulty: i % 3 === 0 ? null : ((i * 31) % 60) / 10 - 3,
  timeSpentSeconds: 5 + ((i * 13) % 90),
  confidenceScore: i % 2 === 0 ? null : 1 + (i % 5),
});

/** One answer on its way: the states that it meets, and what it is counted with. */
export interface Step {
  readonly skillId: string;
  readonly states: AnswerStates;
  readonly answer: Answer;
  readonly conditions: Conditions;
}

export interface MadeLearner {
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
}

/** Counts answers on skills and items in turn. @param itemCount 0: answers without items */
function serve(answers: readonly Answer[], model: TenantModel, skillCount: number, itemCount = 0) {
  const skills = new Map<string, SkillState>();
  const items = new Map<string, RememberedItem>();
  let learner = newLearner;
  const steps = answers.map((answer, i): Step => {
    const skillId = `skill-${i % skillCount}`;
    const itemId = itemCount === 0 ? null : `item-${i % itemCount}`;
    const skill = skills.get(skillId) ?? newSkill(defaultParameters);
    const met = itemId === null ? null : items.get(itemId);
    const states = { asked: askedOf(skillId, itemId), learner, skill, item: met };
    const conditions = conditionsFor(model, skillId, itemId === null ? null : item, states, answer);
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (itemId !== null && effect.item) items.set(itemId, effect.item);
    return { skillId, states, answer, conditions };
  });
  return { steps, learner, skills };
}

/** One learner's answers on 20 skills and 200 items, with times, confidence and difficulty. */
export const stepsOf = (answers: number): Step[] =>
  serve(indices(answers).map(answerAt), unfittedModel, 20, 200).steps;

export function learnerOf(answers: readonly Answer[], skillCount: number, model: TenantModel): MadeLearner {
  const { learner, skills } = serve(answers, model, skillCount);
  return { learner: { ...learner, baselineTotal: 1000 }, skills };
}

/** Gives the values one after the other, again and again. */
export function inTurn<T>(values: readonly T[]): () => T {
  let next = 0;
  return () => {
    const value = values[next] as T;
    next = next + 1 === values.length ? 0 : next + 1;
    return value;
  };
}
