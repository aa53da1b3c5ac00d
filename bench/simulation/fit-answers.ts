import { type AnswerLog, createMembers } from '../../src/domain/base/answer-log.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import { type ItemModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant, selectTrainingLearners } from '../../src/domain/fit/fit-tenant.js';
import { buildItemModel } from '../../src/domain/fit/prediction/replay-log.js';
import type { DemoAnswer } from '../../src/lab/demo/answers.js';
import { createInterner } from '../../src/lists.js';

export type PastAnswer = Pick<
  DemoAnswer,
  'itemId' | 'isCorrect' | 'occurredAt' | 'timeSpentSeconds' | 'questionDifficulty'
> & { readonly skillId: string };

/**
 * @param learnerKeys select the held-out learners
 * @param knownSkills ids in the order of their numbers
 */
export async function fitAnswers(
  histories: readonly (readonly PastAnswer[])[],
  learnerKeys: Uint32Array,
  knownSkills: readonly string[] = [],
  knownItems: readonly string[] = [],
) {
  const skillIds = createInterner([...knownSkills]);
  const itemIds = createInterner(['', ...knownItems]);
  const log = buildLog(histories, skillIds, itemIds);
  const fit = {
    log,
    training: selectTrainingLearners(learnerKeys),
    skillIds: skillIds.ids,
    current: unfittedModel,
  };
  const fittedAt = new Date(0).toISOString();
  const { model, items } = await fitTenant({ ...fit, version: 1, fittedAt }, localRunner);
  const keyAt = (number: number): number => hashKey(itemIds.ids[number] ?? '');
  const itemModels = new Map<string, ItemModel | null>(
    itemIds.ids.map((id, number) => [id, items && buildItemModel(items, number, keyAt)]),
  );
  return { model, items, itemOf: (itemId: string) => itemModels.get(itemId) ?? null };
}

type Interner = ReturnType<typeof createInterner>;

function buildLog(
  histories: readonly (readonly PastAnswer[])[],
  skills: Interner,
  items: Interner,
): AnswerLog {
  const all = histories.flat();
  const starts = [0];
  for (const answers of histories) starts.push((starts.at(-1) ?? 0) + answers.length);
  const columns = {
    starts: Uint32Array.from(starts),
    skill: Uint32Array.from(all, ({ skillId }) => skills.indexOf(skillId)),
    item: Uint32Array.from(all, ({ itemId }) => items.indexOf(itemId ?? '')),
    correct: Uint8Array.from(all, ({ isCorrect }) => Number(isCorrect)),
    at: Float64Array.from(all, ({ occurredAt }) => occurredAt),
    seconds: Float32Array.from(all, ({ timeSpentSeconds }) => timeSpentSeconds ?? Number.NaN),
    difficulty: Float32Array.from(all, ({ questionDifficulty }) => questionDifficulty ?? Number.NaN),
  };
  return {
    ...columns,
    skills: skills.ids.length,
    items: items.ids.length - 1,
    members: createMembers(skills.ids.length),
  };
}
