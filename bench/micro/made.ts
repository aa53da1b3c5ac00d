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
import type { ItemTrace } from '../../src/domain/tracing/traces.js';

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

/** One learner's answers on 20 skills and 200 items, with times, confidence and difficulty. */
export function stepsOf(answers: number): Step[] {
  const skills = new Map<string, SkillState>();
  const items = new Map<number, RememberedItem<ItemTrace>>();
  let learner = newLearner;
  return Array.from({ length: answers }, (_, i) => {
    const skillId = `skill-${i % 20}`;
    const skill = skills.get(skillId) ?? newSkill(defaultParameters);
    const asked = askedOf({ skillId, itemId: `item-${i % 200}` });
    const states = { asked, learner, skill, item: items.get(i % 200) };
    const answer = answerAt(i);
    const conditions = conditionsFor(unfittedModel, skillId, item, states, answer);
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (effect.item) items.set(i % 200, effect.item);
    return { skillId, states, answer, conditions };
  });
}

export interface MadeLearner {
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
}

export function learnerOf(answers: readonly Answer[], skillCount: number, model: TenantModel): MadeLearner {
  const skills = new Map<string, SkillState>();
  let learner: LearnerState = newLearner;
  for (const [i, answer] of answers.entries()) {
    const skillId = `skill-${i % skillCount}`;
    const asked = askedOf({ skillId, itemId: null });
    const states = { asked, learner, skill: skills.get(skillId) ?? newSkill(defaultParameters), item: null };
    const effect = applyAnswer(states, answer, conditionsFor(model, skillId, null, states, answer));
    learner = effect.learner;
    skills.set(skillId, effect.skill);
  }
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
