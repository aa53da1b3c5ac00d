import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { indices } from '../../src/lists.js';
import { fitAnswers, type PastAnswer } from '../simulation/fit-answers.js';
import type { ServedSchool } from './engine.js';
import { type Policy, policies, runStudy } from './study.js';
import { buildSkillId, drawBank, drawLearner, skillCount, type World } from './world.js';

export const unfitted: ServedSchool = { model: unfittedModel, itemOf: () => null };

const answersPerLearner = 150;

const pastPolicies = [policies['random items'], policies['fixed order, each skill until reported mastered']];

export async function fitSchool(world: World, seed: number, learners = 250): Promise<ServedSchool> {
  const bank = drawBank(world, seed);
  const histories = indices(learners).map((number) => {
    const learner = drawLearner(world, seed, 100_000 + number);
    const answers: PastAnswer[] = [];
    const run = { bank, learner, served: unfitted, limit: answersPerLearner };
    runStudy(pastPolicies[number % 2] as Policy, run, (item, isCorrect, occurredAt) =>
      answers.push({
        ...{ skillId: item.skillId, itemId: item.itemId, questionDifficulty: item.rated },
        ...{ isCorrect, occurredAt, timeSpentSeconds: null },
      }),
    );
    return answers;
  });
  const keys = Uint32Array.from(indices(learners), (i) => i * 2654435761);
  const skillIds = indices(skillCount).map(buildSkillId);
  const itemIds = bank.map(({ itemId }) => itemId);
  const { model, itemOf } = await fitAnswers(histories, keys, skillIds, itemIds);
  return { model, itemOf: ({ itemId }) => itemOf(itemId) };
}
