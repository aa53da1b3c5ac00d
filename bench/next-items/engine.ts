/** Sees answers and ratings, but not the true state of the learner. */
import { type AssessedCandidate, assessQuestions } from '../../src/domain/advice/next-items.js';
import type { ItemModel, TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { isMastered } from '../../src/domain/learner/expected-accuracy.js';
import type { SkillView } from '../../src/domain/learner/skill-view.js';
import { assessLearner } from '../../src/domain/score/assessment.js';
import { indices } from '../../src/lists.js';
import { createServedLearner } from '../simulation/served-learner.js';
import { buildSkillId, type Item, skillCount } from './world.js';

export interface ServedSchool {
  readonly model: TenantModel;
  readonly itemOf: (item: Item) => ItemModel | null;
}

export type Engine = ReturnType<typeof createEngine>;

const skillIds = indices(skillCount).map(buildSkillId);

export function createEngine({ model, itemOf }: ServedSchool) {
  const learner = createServedLearner(model, skillCount);
  const viewsAt = (now: number): SkillView[] => learner.viewsAt(skillIds, now);
  return {
    masteriesAt: (now: number): number[] => viewsAt(now).map(({ mastery }) => mastery),
    masteredAt: (now: number): boolean[] => {
      const subject = learner.subjectAt(now);
      return viewsAt(now).map((view) => isMastered(view, subject));
    },
    candidatesAt: (questions: readonly Item[], now: number): AssessedCandidate[] =>
      assessQuestions(
        assessLearner(learner.subjectAt(now)),
        questions.map((item) => ({
          skillIds: [item.skillId] as const,
          itemId: item.itemId,
          questionDifficulty: item.rated,
          item: itemOf(item),
          itemRecord: learner.met(item.itemId),
        })),
      ),
    count(item: Item, isCorrect: boolean, occurredAt: number): void {
      const { skillId, itemId, rated: difficulty } = item;
      const outcome = { isCorrect, occurredAt, timeSpentSeconds: null };
      learner.count({ skillId, itemId, difficulty, item: itemOf(item) }, outcome);
    },
  };
}
