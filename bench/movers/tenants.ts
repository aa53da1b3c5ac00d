/** The tenants of the simulation: one without a fit, and the demo's school after a fit. */

import { keyOf } from '../../src/domain/base/text-hash.js';
import { catalogueOf } from '../../src/domain/catalogue/catalogue.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { itemModelAt } from '../../src/domain/fit/prediction/replay.js';
import { runHere } from '../../src/domain/fit/stages.js';
import { fitTenant, holdOut } from '../../src/domain/fit/tenant.js';
import type { DemoAnswer } from '../../src/lab/demo/answers.js';
import { makeDemo } from '../../src/lab/demo/demo.js';
import type { DemoSkill, Draws } from '../../src/lab/demo/school.js';
import { createInterner, groupedBy, indices } from '../../src/lists.js';
import type { Question } from '../served-learner.js';

export interface Tenant {
  readonly model: TenantModel;
  readonly knownSkills: number;
  /** Question generators for this many skills, one per skill. */
  readonly drawSkills: (count: number, draws: Draws) => (() => Question)[];
}

/** No catalogue and no items. One learner's skills are too rare to count as known. */
export const freshTenant: Tenant = {
  model: unfittedModel,
  knownSkills: 0,
  drawSkills: (count) =>
    indices(count).map((i) => () => ({ skillId: `skill-${i}`, itemId: null, difficulty: null, item: null })),
};

/** Fitted as the service fits, on all answers of a demo school of this many learners. */
export async function fitDemo(learners: number): Promise<Tenant> {
  const { skills, weeks } = makeDemo({ until: '2026-06-30', seed: 1, learners });
  const byLearner = groupedBy(
    weeks.flatMap(({ answers }) => answers),
    ({ userId }) => userId,
  );
  const [skillIds, itemIds] = [createInterner([]), createInterner([''])];
  const log = logOf([...byLearner.values()], skillIds, itemIds);
  const training = holdOut(Uint32Array.from(byLearner.keys(), keyOf));
  const fit = { log, training, skillIds: skillIds.ids, current: unfittedModel, version: 1 };
  const { model, items } = await fitTenant({ ...fit, fittedAt: new Date(0).toISOString() }, runHere);
  if (items === null) throw new Error('The fit on the demo did not publish any items');
  const itemModels = new Map(
    itemIds.ids.map((id, number) => [
      id,
      itemModelAt(items, number, (other) => keyOf(itemIds.ids[other] ?? '')),
    ]),
  );
  const questionOf = ({ id, items }: DemoSkill, draws: Draws): Question => {
    const { id: itemId, rated } = draws.pick(items);
    return { skillId: id, itemId, difficulty: rated, item: itemModels.get(itemId) ?? null };
  };
  return {
    model: { ...model, catalogue: demoCatalogue(skills) },
    knownSkills: skills.length,
    drawSkills: (count, draws) =>
      drawHalves(skills, count, draws).map((skill) => () => questionOf(skill, draws)),
  };
}

const demoCatalogue = (skills: readonly DemoSkill[]) =>
  catalogueOf(
    1,
    new Map(
      skills.map(({ id, name, section }) => [
        id,
        { name, section, weight: 1, parameters: null, revision: 1, updatedAt: 0 },
      ]),
    ),
  );

/** Different skills, half of them of each section. */
function drawHalves(skills: readonly DemoSkill[], count: number, draws: Draws): DemoSkill[] {
  const halves = [...groupedBy(skills, ({ section }) => section).values()];
  return halves.flatMap((half) => shuffled(half, draws).slice(0, Math.ceil(count / 2)));
}

export function shuffled<Item>(items: readonly Item[], draws: Draws): Item[] {
  const keyed = items.map((item) => ({ item, key: draws.between(0, 1) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

type Interner = ReturnType<typeof createInterner>;

/** @param histories answers of each learner, in the order of arrival */
function logOf(histories: readonly (readonly DemoAnswer[])[], skills: Interner, items: Interner) {
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
  return { ...columns, skills: skills.ids.length, items: items.ids.length - 1 };
}
