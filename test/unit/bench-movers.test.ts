import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moverCases, panelCases, portraitCases, runHistory } from '../../bench/movers/histories.js';
import { runSeeds } from '../../bench/movers/main.js';
import { fitDemo, freshTenant } from '../../bench/movers/tenants.js';

const named = <One extends { readonly name: string }>(all: readonly One[], name: string): One =>
  all.find((one) => one.name === name) as One;

const runMover = (name: string, seed = 1) => runHistory(freshTenant, named(moverCases, name).history, seed);

test('the same seed gives the same learner, another seed another one', () => {
  assert.deepEqual(runMover('improves'), runMover('improves'));
  assert.notDeepEqual(runMover('improves'), runMover('improves', 2));
});

test('a learner who declines ends with fewer right answers, less mastery and a lower prediction', () => {
  const [up, down] = [runMover('improves').figures, runMover('declines').figures];
  for (const figure of ['observed', 'predicted', 'mastered', 'mastery'] as const)
    assert.ok(up[figure] > down[figure], `${figure} ${up[figure]}, ${down[figure]}`);
  assert.ok(down.target > up.target, 'the baseline is that of the first answers');
});

test('a fixed history has its exact share of right answers in every order', () => {
  const { figures } = runSeeds(freshTenant, named(panelCases, '29 of 42 right on 4'), 3);
  const { mean, sd } = figures.observed;
  assert.ok(Math.abs(mean - 29 / 42) < 1e-9 && sd < 1e-9, `${mean} ± ${sd}`);
  assert.ok(figures.mastery.sd > 0);
});

test('fitted tenants ask items of both sections, and advice names the skills', async () => {
  const demo = await fitDemo(10);
  assert.equal(demo.knownSkills, demo.model.catalogue.entries.size);
  const { advice } = runHistory(demo, named(portraitCases, 'beginner').history, 1);
  assert.ok(advice.some(({ code, text }) => code === 'EXPLORE' && /Math|Reading/.test(text)));
});
