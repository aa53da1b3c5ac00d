/** What the service's own fit makes of the answers of earlier learners of a school. */
import { keyOf } from '../../src/domain/base/text-hash.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { itemModelAt } from '../../src/domain/fit/prediction/replay.js';
import { runHere } from '../../src/domain/fit/stages.js';
import { fitTenant, holdOut } from '../../src/domain/fit/tenant.js';
import { indices } from '../../src/lists.js';
import type { Served } from './engine.js';
import { type Policy, policies, study } from './study.js';
import {
  drawBank,
  drawLearner,
  type Item,
  itemIdOf,
  itemsPerSkill,
  skillCount,
  skillIdOf,
  type World,
} from './world.js';

/** Without a fit: the default parameters. */
export const unfitted: Served = { model: unfittedModel, itemOf: () => null };

const answersEach = 150;

/** Half of them were given random items, half a fixed order. */
const pastPolicies = [policies['random items'], policies['fixed order, each skill until called mastered']];

export async function fitSchool(world: World, seed: number, learners = 250): Promise<Served> {
  const bank = drawBank(world, seed);
  const log = pastAnswers(world, seed, learners);
  const training = holdOut(Uint32Array.from(indices(learners), (i) => i * 2654435761));
  const rest = { current: unfittedModel, version: 1, fittedAt: new Date(0).toISOString() };
  const { model, items } = await fitTenant(
    { log, training, skillIds: indices(skillCount).map(skillIdOf), ...rest },
    runHere,
  );
  const known = bank.map(({ index }) => items && itemModelAt(items, index + 1, keyOfItem));
  return { model, itemOf: ({ index }) => known[index] ?? null };
}

/** Items are numbered from 1 in a log. */
const keyOfItem = (number: number): number => keyOf(itemIdOf(number - 1));

function pastAnswers(world: World, seed: number, learners: number) {
  const bank = drawBank(world, seed);
  const past = indices(learners).map((number) => {
    const policy = pastPolicies[number % 2] as Policy;
    const learner = drawLearner(world, seed, 100_000 + number);
    const answers: { item: Item; isCorrect: boolean; at: number }[] = [];
    const run = { bank, learner, served: unfitted, limit: answersEach };
    study(policy, run, (item, isCorrect, at) => answers.push({ item, isCorrect, at }));
    return answers;
  });
  const all = past.flat();
  const starts = [0];
  for (const answers of past) starts.push((starts.at(-1) ?? 0) + answers.length);
  return {
    starts: Uint32Array.from(starts),
    skill: Uint32Array.from(all, ({ item }) => item.skill),
    item: Uint32Array.from(all, ({ item }) => item.index + 1),
    correct: Uint8Array.from(all, ({ isCorrect }) => Number(isCorrect)),
    at: Float64Array.from(all, ({ at }) => at),
    seconds: new Float32Array(all.length).fill(Number.NaN),
    difficulty: Float32Array.from(all, ({ item }) => item.rated ?? Number.NaN),
    skills: skillCount,
    items: skillCount * itemsPerSkill,
  };
}
