/** A learner served in this process, without Redis. */

import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { type Answer, toUtcDay } from '../../src/domain/base/common.js';
import {
  type ItemModel,
  resolveSkillModel,
  type TenantModel,
} from '../../src/domain/catalogue/tenant-model.js';
import {
  buildSkillViews,
  collectPractisedSkills,
  computeMeanMastery,
  type SkillView,
} from '../../src/domain/learner/skill-view.js';
import type { ForecastSubject } from '../../src/domain/score/assessment.js';
import { isBaselineDue } from '../../src/domain/score/goal.js';
import { computeCurrentTotal } from '../../src/domain/score/scores.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import {
  computeDayEnd,
  type ItemRecord,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
  startsNewDay,
} from '../../src/domain/tracing/learner-states.js';

export interface Question {
  readonly skillId: string;
  readonly itemId: string | null;
  /** From the platform, in logits. */
  readonly difficulty: number | null;
  readonly item: ItemModel | null;
}

export type Outcome = Pick<Answer, 'isCorrect' | 'occurredAt' | 'timeSpentSeconds'> &
  Partial<Pick<Answer, 'confidenceScore'>>;

export type Step = ReturnType<ReturnType<typeof createServedLearner>['count']>;

export function createServedLearner(model: TenantModel, registeredSkills: number) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>();
  const items = new Map<string, ItemRecord>();
  const stateOf = (skillId: string): SkillState =>
    skills.get(skillId) ?? newSkill(resolveSkillModel(model, skillId).parameters);
  /** Includes skills without answers. */
  const viewsAt = (skillIds: readonly string[], now: number): SkillView[] =>
    buildSkillViews(
      skillIds.map((skillId) => [skillId, stateOf(skillId)]),
      model,
      now,
    );
  const subjectAt = (now: number): ForecastSubject => {
    const views = buildSkillViews(skills, model, now);
    return { learner, views, model, registeredSkills, now };
  };

  function closedMastery(answer: Answer): number | null {
    if (!startsNewDay(learner, toUtcDay(answer.occurredAt))) return null;
    return computeMeanMastery(collectPractisedSkills(skills, model), computeDayEnd(learner));
  }

  function count({ skillId, itemId, difficulty, item }: Question, outcome: Outcome) {
    const answer: Answer = { confidenceScore: null, ...outcome, questionDifficulty: difficulty };
    const states = {
      keys: hashQuestionKeys([skillId], itemId),
      learner,
      skills: [stateOf(skillId)] as const,
      item: itemId === null ? null : items.get(itemId),
    };
    const conditions = computeConditions(model, [skillId], item, states, answer, closedMastery(answer));
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skills[0]);
    if (itemId !== null && effect.item) items.set(itemId, effect.item);
    if (isBaselineDue(learner))
      learner = { ...learner, baselineTotal: computeCurrentTotal(subjectAt(answer.occurredAt)) };
    return { skillId, states, answer, conditions };
  }
  const met = (itemId: string) => items.get(itemId);
  return { count, subjectAt, viewsAt, met, states: () => ({ learner, skills }) };
}
