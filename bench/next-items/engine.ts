/** The engine as the service runs it, about one learner: it is told answers and ratings, and nothing of the true state. */
import { type JudgedCandidate, judgeQuestions } from '../../src/domain/advice/next-items.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { conditionsFor } from '../../src/domain/answer/conditions.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { isMastered } from '../../src/domain/learner/expected.js';
import { type SkillView, viewSkills } from '../../src/domain/learner/skill-view.js';
import { standingOf } from '../../src/domain/score/score.js';
import { askedOf } from '../../src/domain/tracing/course.js';
import {
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../../src/domain/tracing/states.js';
import type { ItemTrace } from '../../src/domain/tracing/traces.js';
import { indices } from '../../src/lists.js';
import { type Item, skillCount, skillIdOf } from './world.js';

/** What a tenant is served with. */
export interface Served {
  readonly model: TenantModel;
  readonly itemOf: (item: Item) => ItemModel | null;
}

export type Engine = ReturnType<typeof createEngine>;

export function createEngine({ model, itemOf }: Served) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>(
    indices(skillCount)
      .map(skillIdOf)
      .map((id) => [id, newSkill(skillModelOf(model, id).parameters)]),
  );
  const items = new Map<number, RememberedItem<ItemTrace>>();
  const viewsAt = (now: number): SkillView[] => viewSkills(skills, model, now);
  return {
    /** By skill: what the engine takes for its mastery, and whether it calls it mastered. */
    masteriesAt: (now: number): number[] => viewsAt(now).map(({ mastery }) => mastery),
    masteredAt: (now: number): boolean[] =>
      viewsAt(now).map((view) => isMastered(view, { learner, model, now })),
    /** As the call judges them. */
    candidatesAt(questions: readonly Item[], now: number): JudgedCandidate[] {
      const views = viewsAt(now).filter(({ state }) => state.attempts > 0);
      const standing = standingOf({ learner, views, model, knownSkills: skillCount, now });
      return judgeQuestions(
        standing,
        questions.map((item) => ({
          skillId: item.skillId,
          itemId: item.itemId,
          questionDifficulty: item.rated,
          item: itemOf(item),
          met: items.get(item.index),
        })),
      );
    },
    count(item: Item, isCorrect: boolean, occurredAt: number): void {
      const id = item.skillId;
      const own = { skill: skills.get(id) as SkillState, item: items.get(item.index) };
      const states = { asked: askedOf(item), learner, ...own };
      const answer = {
        ...{ isCorrect, occurredAt, questionDifficulty: item.rated },
        ...{ timeSpentSeconds: null, confidenceScore: null },
      };
      const effect = applyAnswer(states, answer, conditionsFor(model, id, itemOf(item), states, answer));
      learner = effect.learner;
      skills.set(id, effect.skill);
      if (effect.item) items.set(item.index, effect.item);
    },
  };
}
