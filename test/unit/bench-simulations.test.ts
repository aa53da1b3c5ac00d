/** The simulated learners of `npm run bench -- --movers` and `--next-items`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moverCases, runHistory } from '../../bench/movers/histories.js';
import { freshTenant } from '../../bench/movers/tenants.js';
import { unfitted } from '../../bench/next-items/fit-school.js';
import { type PolicyName, policies, runStudy } from '../../bench/next-items/study.js';
import { drawBank, drawLearner, skillCount, type World, worlds } from '../../bench/next-items/world.js';
import { computeSum, indices } from '../../src/lists.js';

const findCase = <Case extends { readonly name: string }>(cases: readonly Case[], name: string): Case =>
  cases.find((one) => one.name === name) ?? assert.fail(`no case ${name}`);
const runMover = (name: string, seed = 1) =>
  runHistory(freshTenant, findCase(moverCases, name).history, seed);

test('runHistory returns the same learner for a seed, and lower values for one who declines', () => {
  assert.deepEqual(runMover('improves'), runMover('improves'));
  assert.notDeepEqual(runMover('improves'), runMover('improves', 2));
  const [up, down] = [runMover('improves').figures, runMover('declines').figures];
  for (const figure of ['observed', 'predicted', 'mastered', 'mastery'] as const)
    assert.ok(up[figure] > down[figure], `${figure} ${up[figure]}, ${down[figure]}`);
  assert.ok(down.target > up.target, 'the baseline is not computed from the first answers');
});

const zone = worlds.zone as World;
const bank = drawBank(zone, 1);
const runCourse = (name: PolicyName, number: number) =>
  runStudy(policies[name], { bank, learner: drawLearner(zone, 1, number), served: unfitted, limit: 1500 });

test('runStudy returns the same course for a learner, and shorter ones with items of next-items', () => {
  assert.deepEqual(runCourse('random items', 3), runCourse('random items', 3));
  const countAnswers = (name: PolicyName): number =>
    computeSum(indices(2).map((number) => runCourse(name, number).all));
  const [asked, random] = [countAnswers('next-items, .75'), countAnswers('random items')];
  assert.ok(asked < 0.7 * random, `${asked}, random ${random}`);
  assert.ok(countAnswers('oracle with the true state') < asked);
  const { all, most } = runCourse('fixed order, each skill until reported mastered', 0);
  assert.ok(most <= all && all >= skillCount / 2, `${most}, ${all}`);
});
