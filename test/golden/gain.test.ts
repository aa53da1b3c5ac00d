import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstPracticeGain, practiceGain, reviewGain } from '../../src/domain/gain.js';
import { defaultParameters } from '../../src/domain/params.js';
import { sectionSums } from '../../src/domain/skill-view.js';
import type { SkillState } from '../../src/domain/types.js';
import { allIn, modelWith, viewsOf } from '../support/study.js';
import { close, vectors } from './vectors.js';

/** The math skills of the case "both", and one more. */
const states: Record<string, Partial<SkillState>> = Object.fromEntries(
  (vectors.forecast.both?.input.math.skills ?? []).map(({ m }, i) => [`math-${i}`, { mastery: m }]),
);
const model = modelWith(allIn('math', ...Object.keys(states)));
const sums = sectionSums(viewsOf(states, model));

const one = (state: Partial<SkillState>) => {
  const [view] = viewsOf({ 'math-0': state }, model);
  assert.ok(view);
  return view;
};

test('gain per hour of practice', () => {
  for (const { m, plateau, gain } of vectors.gain_per_hour) {
    const run = { attempts: 20, sum: 3, timeSum: 0, squareSum: 1, run: plateau ? 3 : 0 };
    close(practiceGain(one({ mastery: m, plateau: run }), sums), gain, `${m} ${plateau}`);
  }
});

test("an hour holds as many answers as the learner's own pace allows", () => {
  const gain = (seconds: number) =>
    practiceGain(one({ mastery: 0.7, pace: { timed: 4, timedCorrect: 2, seconds, efficiency: 0 } }), sums);
  close(gain(300), 2.738324);
  assert.ok(gain(200) > gain(300) && gain(300) > gain(400));
});

test('a review brings back in three answers what was lost', () => {
  const view = { ...one({ mastery: 0.95 }), mastery: 0.55 };
  // 110 * .7 / 20 points per unit of mastery over .68 (1 - .68), and 16 reviews an hour.
  close(reviewGain(view, sums), ((77 / 20) * 0.4 * 16) / (0.68 * 0.32));
});

test('a skill that was never answered counts among the skills of its section', () => {
  const placement = { section: 'math', weight: 1 } as const;
  const mean = (20 * 0.68 + 0.3) / 21;
  const learned = 0.7 * (1 - 0.985 ** 48);
  close(firstPracticeGain(placement, defaultParameters, sums), ((77 / 21) * learned) / (mean * (1 - mean)));
});

test('a skill without a section gains half in each', () => {
  const states = { a: { mastery: 0.5 }, b: { mastery: 0.5 }, c: { mastery: 0.5 } };
  const model = modelWith({ a: { section: 'math' }, b: { section: 'rw' } });
  const views = viewsOf(states, model);
  const gains = views.map((view) => practiceGain(view, sectionSums(views)));
  // Half of a weight of 1.5 in each of two sections is as much as all of one in one.
  close(gains[2] as number, gains[0] as number);
  close(gains[1] as number, gains[0] as number);
});

test('near the ends of the scale a point of mean mastery is worth no more than at .05 and .95', () => {
  const gain = (mastery: number) => practiceGain(one({ mastery }), { ...sums, math: { weight: 1, mastery } });
  const learned = (mastery: number) => (1 - mastery) * (1 - 0.985 ** 48);
  close(gain(0.01), (77 * learned(0.01)) / (0.05 * 0.95));
  close(gain(0.99), (77 * learned(0.99)) / (0.05 * 0.95));
});
