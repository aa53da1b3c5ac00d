/** Gain per hour of practice, section 7 of science.md. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computePracticeGain, computeReviewGain } from '../../src/domain/advice/practice-gain.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { buildUnseenView } from '../../src/domain/learner/skill-view.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { modelWith, now, viewsOf } from '../support/builders/study.js';
import { close, vectors } from './vectors.js';

/** The math skills of the case "both", with manual parameters, which are fully trusted. */
const masteries = vectors.forecast.both?.input.math.skills.map(({ m }) => m) ?? [];
const model = modelWith(
  Object.fromEntries(
    masteries.map((_, i) => [`math-${i}`, { section: 'math', parameters: defaultParameters }]),
  ),
);
const mean = masteries.reduce((a, b) => a + b, 0) / masteries.length;
const measuresOf = (mastery: number, registeredWeight: number, registeredSkills = 20) => {
  const section = { mastery, registeredWeight, registeredSkills };
  return { math: section, rw: section };
};
const all = measuresOf(mean, masteries.length);

const viewWith = (state: Partial<SkillState>) => viewsOf({ 'math-0': state }, model)[0] ?? assert.fail();
const gainAt = (mastery: number, measures = all): number =>
  computePracticeGain(viewWith({ mastery }), measures);

test('computePracticeGain gives the golden gains per hour', () => {
  for (const { m, plateau, gain } of vectors.gain_per_hour) {
    const run = { attempts: 20, sum: 3, timeSum: 0, squareSum: 1, run: plateau ? 3 : 0 };
    close(computePracticeGain(viewWith({ mastery: m, plateau: run }), all), gain, `${m} ${plateau}`);
  }
});

test('computePracticeGain fits fewer answers of a slower learner into the hour', () => {
  const gain = (seconds: number) => {
    const pace = { timed: 4, timedCorrect: 2, seconds, slowness: 0, accuracy: 0.5 };
    return computePracticeGain(viewWith({ mastery: 0.7, pace }), all);
  };
  close(gain(300), 2.738324);
  assert.ok(gain(200) > gain(300) && gain(300) > gain(400));
});

test('computeReviewGain restores the forgotten mastery in three answers', () => {
  const view = { ...viewWith({ mastery: 0.95 }), mastery: 0.55 };
  // 110 * .7 / 20 points per unit of mastery over .68 (1 - .68), and 16 reviews an hour.
  close(computeReviewGain(view, all), ((77 / 20) * 0.4 * 16) / (0.68 * 0.32));
});

test('computePracticeGain starts an unanswered skill at its prior and trusts default parameters a quarter', () => {
  const learned = 0.7 * (1 - 0.985 ** 48);
  const gain = computePracticeGain(buildUnseenView('math-0', model, now), all);
  close(gain, ((77 / 20) * learned) / (mean * (1 - mean)));
  const unfitted = modelWith({ 'math-0': { section: 'math' } });
  close(computePracticeGain(buildUnseenView('math-0', unfitted, now), all), gain / 4);
});

test('computePracticeGain and computeReviewGain divide the hour between the fine skills in a coarse one', () => {
  const measures = (skills: number) => measuresOf(0.5, 20, skills);
  close(
    gainAt(0.3, measures(5)) / gainAt(0.3, measures(20)),
    (1 - 0.985 ** 12) / (1 - 0.985 ** 48),
    'practice',
  );
  const faded = { ...viewWith({ mastery: 0.95 }), mastery: 0.55 };
  const reviews = (skills: number) => computeReviewGain(faded, measures(skills));
  close(reviews(5) / reviews(20), 5 / 20, 'review');
  // Before the first answer no skill is registered. A skill without a section counts half in each.
  close(gainAt(0.3, measures(0)), gainAt(0.3, measures(1)), 'no registered skill');
  const unplaced = buildUnseenView('anywhere', model, now);
  const gainOf = (skills: number) => computePracticeGain(unplaced, measuresOf(0.5, skills, skills));
  close(gainOf(0), gainOf(0.5), 'no registered skill, no section');
});

test('computePracticeGain adds half of both sections for a skill without a section', () => {
  const half = { mastery: 0.5 };
  const placed = modelWith({ a: { section: 'math' }, b: { section: 'rw' } });
  const [a = 0, b = 0, c = 0] = viewsOf({ a: half, b: half, c: half }, placed).map((view) =>
    computePracticeGain(view, measuresOf(0.5, 1.5)),
  );
  close(c, a);
  close(b, a);
});

test('computePracticeGain clips the mean mastery to .05 and .95, and never exceeds the whole section', () => {
  for (const mastery of [0.01, 0.99]) {
    const learned = (1 - mastery) * (1 - 0.985 ** 48);
    close(gainAt(mastery, measuresOf(mastery, 1)), (77 * learned) / (0.05 * 0.95), `${mastery}`);
  }
  close(gainAt(0.5, measuresOf(0.5, 0)), gainAt(0.5, measuresOf(0.5, 1)), 'weight');
});
