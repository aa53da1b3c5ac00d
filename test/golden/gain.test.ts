import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computePracticeGain, computeReviewGain } from '../../src/domain/advice/practice-gain.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { buildUnseenView } from '../../src/domain/learner/skill-view.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { modelWith, now, viewsOf } from '../support/builders/study.js';
import { close, vectors } from './vectors.js';

/** The math skills of the case "both", and one more. */
const states: Record<string, Partial<SkillState>> = Object.fromEntries(
  (vectors.forecast.both?.input.math.skills ?? []).map(({ m }, i) => [`math-${i}`, { mastery: m }]),
);
/** Set by hand, and so fully trusted, as the vectors have it. */
const set = { section: 'math', parameters: defaultParameters } as const;
const model = modelWith(Object.fromEntries(Object.keys(states).map((skillId) => [skillId, set])));
/** As the vectors have it: all skills are known and trusted, and the mean is that of their masteries. */
const masteries = Object.values(states).map(({ mastery = 0 }) => mastery);
const mean = masteries.reduce((a, b) => a + b, 0) / masteries.length;
const worth = (mastery: number, knownWeight: number, knownSkills = 20) => ({
  math: { mastery, registeredWeight: knownWeight, registeredSkills: knownSkills },
  rw: { mastery, registeredWeight: knownWeight, registeredSkills: knownSkills },
});
const sums = worth(mean, masteries.length);

const one = (state: Partial<SkillState>) => {
  const [view] = viewsOf({ 'math-0': state }, model);
  assert.ok(view);
  return view;
};

test('gain per hour of practice', () => {
  for (const { m, plateau, gain } of vectors.gain_per_hour) {
    const run = { attempts: 20, sum: 3, timeSum: 0, squareSum: 1, run: plateau ? 3 : 0 };
    close(computePracticeGain(one({ mastery: m, plateau: run }), sums), gain, `${m} ${plateau}`);
  }
});

test("an hour holds as many answers as the learner's own pace allows", () => {
  const gain = (seconds: number) =>
    computePracticeGain(
      one({ mastery: 0.7, pace: { timed: 4, timedCorrect: 2, seconds, slowness: 0, accuracy: 0.5 } }),
      sums,
    );
  close(gain(300), 2.738324);
  assert.ok(gain(200) > gain(300) && gain(300) > gain(400));
});

test('a review brings back in three answers what was lost', () => {
  const view = { ...one({ mastery: 0.95 }), mastery: 0.55 };
  // 110 * .7 / 20 points per unit of mastery over .68 (1 - .68), and 16 reviews an hour.
  close(computeReviewGain(view, sums), ((77 / 20) * 0.4 * 16) / (0.68 * 0.32));
});

test('an hour on a skill that was never answered begins at its prior', () => {
  const learned = 0.7 * (1 - 0.985 ** 48);
  const gain = computePracticeGain(buildUnseenView('math-0', model, now), sums);
  close(gain, ((77 / 20) * learned) / (mean * (1 - mean)));
  // Parameters that nobody fitted are trusted a quarter.
  const unfitted = modelWith({ 'math-0': { section: 'math' } });
  close(computePracticeGain(buildUnseenView('math-0', unfitted, now), sums), gain / 4);
});

test('where a section has few skills each is many fine ones, which share the answers of an hour', () => {
  const [few, many] = [5, 20].map((skills) =>
    computePracticeGain(one({ mastery: 0.3 }), worth(0.5, 20, skills)),
  );
  close((few as number) / (many as number), (1 - 0.985 ** 12) / (1 - 0.985 ** 48));
  const faded = { ...one({ mastery: 0.95 }), mastery: 0.55 };
  const [fewReviews, manyReviews] = [5, 20].map((skills) => computeReviewGain(faded, worth(0.5, 20, skills)));
  close((fewReviews as number) / (manyReviews as number), 5 / 20);
  // Before the first answer none is known, without a section half of one in each.
  const [none, single] = [0, 1].map((skills) =>
    computePracticeGain(one({ mastery: 0.3 }), worth(0.5, 20, skills)),
  );
  close(none as number, single as number);
  const unplaced = buildUnseenView('anywhere', model, now);
  const [nothing, half] = [0, 0.5].map((skills) => computePracticeGain(unplaced, worth(0.5, skills, skills)));
  close(nothing as number, half as number);
});

test('a skill without a section gains half in each', () => {
  const states = { a: { mastery: 0.5 }, b: { mastery: 0.5 }, c: { mastery: 0.5 } };
  const model = modelWith({ a: { section: 'math' }, b: { section: 'rw' } });
  const gains = viewsOf(states, model).map((view) => computePracticeGain(view, worth(0.5, 1.5)));
  close(gains[2] as number, gains[0] as number);
  close(gains[1] as number, gains[0] as number);
});

test('near the ends of the scale a point of mean mastery is worth no more than at .05 and .95', () => {
  const gain = (mastery: number) => computePracticeGain(one({ mastery }), worth(mastery, 1));
  const learned = (mastery: number) => (1 - mastery) * (1 - 0.985 ** 48);
  close(gain(0.01), (77 * learned(0.01)) / (0.05 * 0.95));
  close(gain(0.99), (77 * learned(0.99)) / (0.05 * 0.95));
});

test('a skill that only this learner knows is worth no more than all of its section', () => {
  const gain = computePracticeGain(one({ mastery: 0.5 }), worth(0.5, 0));
  close(gain, computePracticeGain(one({ mastery: 0.5 }), worth(0.5, 1)));
});
