import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitSchool, unfitted } from '../../bench/next-items/fit-school.js';
import { type Course, type PolicyName, policies, runStudy } from '../../bench/next-items/study.js';
import { drawBank, drawLearner, skillCount, type World, worlds } from '../../bench/next-items/world.js';
import { computeSum, indices } from '../../src/lists.js';

const zone = worlds.zone as World;
const bank = drawBank(zone, 1);

const courseOf = (name: PolicyName, number: number, served = unfitted, limit = 1500): Course =>
  runStudy(policies[name], { bank, learner: drawLearner(zone, 1, number), served, limit });

test('the same learner with the same policy takes the same course', () => {
  assert.deepEqual(courseOf('random items', 3), courseOf('random items', 3));
  assert.notDeepEqual(courseOf('random items', 3), courseOf('random items', 4));
});

test('who gets the first of next-items masters all skills with fewer answers than who gets random items', () => {
  const answers = (name: PolicyName): number =>
    computeSum(indices(2).map((number) => courseOf(name, number).all));
  const [asked, random] = [answers('next-items, .75'), answers('random items')];
  assert.ok(asked < 0.7 * random, `${asked}, random ${random}`);
  assert.ok(answers('who knows the true state') < asked, 'nobody beats who knows the true state');
});

test('all skills are mastered no sooner than nine of ten, and not before each was asked about', () => {
  const { all, most } = courseOf('fixed order, each skill until called mastered', 0);
  assert.ok(most <= all && all >= skillCount / 2, `${most}, ${all}`);
});

test('a fit on earlier learners brings parameters of their own, and changes nothing of the learners', async () => {
  const served = await fitSchool(zone, 1, 40);
  const sources = [...served.model.skills.values()].map(({ source }) => source);
  assert.ok(sources.includes('fitted'), sources.join());
  const [before, after] = [unfitted, served].map((one) => courseOf('random items', 1, one, 3000));
  assert.equal(after?.all, before?.all);
  assert.ok((before?.all ?? 3000) < 3000);
});

test('learners forget in a world where they do, and are stopped by prerequisites', () => {
  const levels = (world: World) => {
    const learner = drawLearner(world, 1, 2);
    const teaches = bank.map((item) => learner.teaches(item));
    for (const item of bank) for (const _ of indices(5)) learner.answer(item);
    const known = indices(skillCount).filter((skill) => learner.isMastered(skill)).length;
    for (const _ of indices(400)) learner.sleep();
    return {
      ...{ teaches: computeSum(teaches), known },
      kept: indices(skillCount).filter((skill) => learner.isMastered(skill)).length,
    };
  };
  const [plain, fading, chains] = [zone, worlds.fading as World, worlds.chains as World].map(levels);
  assert.ok(plain && fading && chains);
  assert.equal(plain.kept, plain.known);
  assert.ok(fading.known > 0 && fading.kept < fading.known);
  assert.ok(chains.teaches < plain.teaches);
});
