/** A learner served in this process, without Redis. */
import { applyAnswer } from '../src/domain/answer/apply-answer.js';
import { conditionsFor } from '../src/domain/answer/conditions.js';
import { type Answer, dayMs } from '../src/domain/base/common.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../src/domain/catalogue/tenant-model.js';
import {
  meanMastery,
  practisedSkills,
  type SkillView,
  viewSkills,
} from '../src/domain/learner/skill-view.js';
import type { ForecastSubject } from '../src/domain/score/assessment.js';
import { lacksBaseline } from '../src/domain/score/goal.js';
import { currentTotal } from '../src/domain/score/scores.js';
import { askedOf } from '../src/domain/tracing/course.js';
import {
  closesDay,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../src/domain/tracing/states.js';

export interface Question {
  readonly skillId: string;
  readonly itemId: string | null;
  /** From the platform, in logits. */
  readonly difficulty: number | null;
  readonly item: ItemModel | null;
}

export type Outcome = Pick<Answer, 'isCorrect' | 'occurredAt' | 'timeSpentSeconds'> &
  Partial<Pick<Answer, 'confidenceScore'>>;

export type Step = ReturnType<ReturnType<typeof createLearner>['count']>;

export function createLearner(model: TenantModel, knownSkills: number) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>();
  const items = new Map<string, RememberedItem>();
  const stateOf = (skillId: string): SkillState =>
    skills.get(skillId) ?? newSkill(skillModelOf(model, skillId).parameters);
  /** Includes skills without answers. */
  const viewsAt = (skillIds: readonly string[], now: number): SkillView[] =>
    viewSkills(
      skillIds.map((skillId) => [skillId, stateOf(skillId)]),
      model,
      now,
    );
  const subjectAt = (now: number): ForecastSubject => {
    const views = viewSkills(skills, model, now);
    return { learner, views, model, knownSkills, now };
  };

  function closedMastery(answer: Answer): number | null {
    if (!closesDay(learner, answer)) return null;
    return meanMastery(practisedSkills(skills, model), (learner.activity.day + 1) * dayMs);
  }

  function count({ skillId, itemId, difficulty, item }: Question, outcome: Outcome) {
    const answer: Answer = { confidenceScore: null, ...outcome, questionDifficulty: difficulty };
    const states = {
      asked: askedOf(skillId, itemId),
      learner,
      skill: stateOf(skillId),
      item: itemId === null ? null : items.get(itemId),
    };
    const conditions = conditionsFor(model, skillId, item, states, answer, closedMastery(answer));
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (itemId !== null && effect.item) items.set(itemId, effect.item);
    if (lacksBaseline(learner))
      learner = { ...learner, baselineTotal: currentTotal(subjectAt(answer.occurredAt)) };
    return { skillId, states, answer, conditions };
  }
  const met = (itemId: string) => items.get(itemId);
  return { count, subjectAt, viewsAt, met, states: () => ({ learner, skills }) };
}
