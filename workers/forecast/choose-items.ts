import type {
  ItemCandidate,
  NextItemsReply,
  NextItemsTask,
} from '../../src/contracts/forecasts/forecast-tasks.js';
import {
  type AssessedCandidate,
  assessQuestions,
  explainCandidate,
  orderCandidates,
} from '../../src/domain/advice/next-items.js';
import { round4 } from '../../src/domain/base/common.js';
import type { ItemModel } from '../../src/domain/catalogue/tenant-model.js';
import { assessLearner, type LearnerAssessment } from '../../src/domain/score/assessment.js';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { distinct } from '../../src/lists.js';
import { locateLearner } from '../../src/store/learners/learner-commands.js';
import { readWithItems } from '../../src/store/learners/learner-reads.js';
import { hashItem, readItems } from '../../src/store/models/item-store.js';
import { buildSubject, type ForecastDependencies, readTenant } from './compute-forecasts.js';

const emptyLearner = { learner: newLearner, skills: [], goalRecord: null, items: new Map<string, never>() };

/** Two round trips: the tenant's model determines which items to read. */
export async function chooseNextItems(
  dependencies: ForecastDependencies,
  task: NextItemsTask,
): Promise<NextItemsReply> {
  const { tenant: name, userId } = task;
  const candidates: readonly ItemCandidate[] = JSON.parse(task.items);
  const client = await dependencies.redis();
  const [found, tenant] = await Promise.all([
    readWithItems(client, locateLearner(name, userId, dependencies.settings.partitions)),
    readTenant(dependencies.models, client, name),
  ]);
  const hashes = new Map(
    distinct(candidates.flatMap(({ itemId }) => itemId ?? [])).map((itemId) => [itemId, hashItem(itemId)]),
  );
  const records = await readItems(client, name, tenant.model.version, [...hashes.values()]);
  const models = new Map([...hashes.keys()].map((itemId, i) => [itemId, records[i] ?? null]));
  const { items, ...learner } = found ?? emptyLearner;
  const assessment = assessLearner(buildSubject(learner, tenant, dependencies.now()));
  const questions = candidates.map(({ itemId, skillIds, questionDifficulty }) => ({
    ...{ skillIds, itemId, questionDifficulty },
    item: itemId === null ? null : (models.get(itemId) as ItemModel | null),
    itemRecord: itemId === null ? null : items.get((hashes.get(itemId) as Buffer).toString('hex')),
  }));
  const distinctItems = omitRepeatedItems(assessQuestions(assessment, questions), candidates);
  const ranked = orderCandidates(distinctItems, task.target, task.limit);
  return { data: buildItemsJson(ranked, candidates, assessment, task) };
}

/** Keeps the first candidate of each item, and all without an id. */
function omitRepeatedItems(assessed: readonly AssessedCandidate[], candidates: readonly ItemCandidate[]) {
  const firstIndexes = new Map(candidates.map(({ itemId }, i) => [itemId, i] as const).toReversed());
  return assessed.filter(({ index }) => {
    const itemId = candidates[index]?.itemId ?? null;
    return itemId === null || firstIndexes.get(itemId) === index;
  });
}

const buildItemsJson = (
  ranked: readonly AssessedCandidate[],
  candidates: readonly ItemCandidate[],
  assessment: LearnerAssessment,
  { userId, target }: NextItemsTask,
): string =>
  JSON.stringify({
    user_id: userId,
    target,
    items: ranked.map((candidate) => {
      const { index, skills, pCorrect, gain } = candidate;
      const reason = explainCandidate(candidate, target, assessment);
      return {
        index,
        item_id: candidates[index]?.itemId,
        ...describeSkill(skills[0]),
        ...(candidates[index]?.listsSkills && { skills: skills.map(describeSkill) }),
        p_correct: round4(pCorrect),
        expected_gain: round4(gain),
        reason_code: reason.code,
        reason: reason.text,
      };
    }),
  });

const describeSkill = ({ view }: AssessedCandidate['skills'][0]) => ({
  skill_id: view.skillId,
  mastery: round4(view.mastery),
});
