import { hashKey } from '../../src/domain/base/text-hash.js';
import { buildCatalogue } from '../../src/domain/catalogue/catalogue.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { generateDemo } from '../../src/lab/demo/generate-demo.js';
import type { DemoSkill, Draws } from '../../src/lab/demo/school.js';
import { groupBy, indices } from '../../src/lists.js';
import { fitAnswers } from '../simulation/fit-answers.js';
import type { Question } from '../simulation/served-learner.js';

export interface Tenant {
  readonly model: TenantModel;
  readonly knownSkills: number;
  readonly drawSkills: (count: number, draws: Draws) => (() => Question)[];
}

/** The skills of one learner are too rare to count as registered. */
export const freshTenant: Tenant = {
  model: unfittedModel,
  knownSkills: 0,
  drawSkills: (count) =>
    indices(count).map((i) => () => ({ skillId: `skill-${i}`, itemId: null, difficulty: null, item: null })),
};

export async function fitDemo(learners: number): Promise<Tenant> {
  const { skills, weeks } = generateDemo({ until: '2026-06-30', seed: 1, learners });
  const byLearner = groupBy(
    weeks.flatMap(({ answers }) => answers.map((answer) => ({ ...answer, skillId: answer.skillIds[0] }))),
    ({ userId }) => userId,
  );
  const keys = Uint32Array.from(byLearner.keys(), hashKey);
  const { model, items, itemOf } = await fitAnswers([...byLearner.values()], keys);
  if (items === null) throw new Error('The fit of the demo published no items');
  const questionOf = (skill: DemoSkill, draws: Draws): Question => {
    const { id: itemId, rated } = draws.pick(skill.items);
    return { skillId: skill.id, itemId, difficulty: rated, item: itemOf(itemId) };
  };
  return {
    model: { ...model, catalogue: createDemoCatalogue(skills) },
    knownSkills: skills.length,
    drawSkills: (count, draws) =>
      drawHalves(skills, count, draws).map((skill) => () => questionOf(skill, draws)),
  };
}

const createDemoCatalogue = (skills: readonly DemoSkill[]) =>
  buildCatalogue(
    1,
    new Map(
      skills.map(({ id, name, section }) => [
        id,
        { name, section, weight: 1, parameters: null, revision: 1, updatedAt: 0 },
      ]),
    ),
  );

function drawHalves(skills: readonly DemoSkill[], count: number, draws: Draws): DemoSkill[] {
  const halves = [...groupBy(skills, ({ section }) => section).values()];
  return halves.flatMap((half) => shuffle(half, draws).slice(0, Math.ceil(count / 2)));
}

export function shuffle<Item>(items: readonly Item[], draws: Draws): Item[] {
  const keyed = items.map((item) => ({ item, key: draws.between(0, 1) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}
