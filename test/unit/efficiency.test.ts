/** The efficiency index of simulated learners, and the norms that it compares them with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  computeEfficiencyIndex,
  computeRapidThreshold,
  computeSkillNorm,
  isRapid,
  isRapidFlagged,
  measureTimes,
  missingEfficiencyReason,
  newPace,
  newRapid,
  type SkillTimes,
  updatePace,
  updateRapid,
} from '../../src/domain/tracing/response-times.js';
import { indices } from '../../src/lists.js';
import { answerLog } from '../support/builders/answer-logs.js';
import { seeded } from '../support/builders/random.js';

interface Kind {
  readonly share: number;
  readonly seconds: number;
}

const kinds = {
  fastAccurate: { share: 0.9, seconds: 15 },
  slowAccurate: { share: 0.9, seconds: 90 },
  average: { share: 0.7, seconds: 40 },
  fastWrong: { share: 0.4, seconds: 15 },
  slowWrong: { share: 0.4, seconds: 90 },
  verySlow: { share: 0.7, seconds: 600 },
  guesser: { share: 0.25, seconds: 2 },
} satisfies Record<string, Kind>;

const random = seeded(20261127);
const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const answersOf = ({ share, seconds }: Kind) =>
  indices(40).map(() => ({
    skill: 0,
    correct: random() < share,
    seconds: seconds * Math.exp(0.3 * normal()),
  }));

/** Pace and rapid answers of a learner on a skill after 40 answers. */
function practise(kind: Kind, times: SkillTimes | null) {
  const [norm, threshold] = [computeSkillNorm(times), computeRapidThreshold(times)];
  let [pace, rapid] = [newPace, newRapid];
  for (const { correct, seconds } of answersOf(kind)) {
    pace = updatePace(pace, correct, seconds, norm, isRapid(seconds, threshold));
    rapid = updateRapid(rapid, seconds, threshold);
  }
  return { pace, rapid, norm };
}

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;

/** Mean and standard deviation of the index over 60 learners with three skills. */
function indexOf(kind: Kind, times: SkillTimes | null) {
  const values = indices(180)
    .map(() => practise(kind, times))
    .map(({ pace, rapid, norm }) => computeEfficiencyIndex(pace, rapid, norm))
    .filter((index) => index !== null);
  assert.ok(values.length >= 170, 'a rapid threshold of 10 s catches few answers around 15 s');
  const centre = mean(values);
  return { mean: centre, sd: Math.sqrt(mean(values.map((value) => (value - centre) ** 2))) };
}

const measured = (learners: readonly Kind[]): SkillTimes | null =>
  measureTimes(answerLog(1, learners.map(answersOf)))[0] ?? null;
const classmates = indices(30).map((i) => ({
  share: 0.72 + 0.15 * Math.sin(i),
  seconds: 50 * Math.exp(0.4 * Math.cos(2.3 * i)),
}));
const tenants = {
  'before a fit': null,
  'with a norm fitted to the seven learners': measured(Object.values(kinds)),
  'with a norm fitted to a class': measured(classmates),
};

for (const [name, times] of Object.entries(tenants))
  test(`efficiency of simulated learners ${name}`, () => {
    const { guesser, ...others } = kinds;
    const found = Object.fromEntries(
      Object.entries(others).map(([kind, learner]) => [kind, indexOf(learner, times)]),
    ) as Record<keyof typeof others, { mean: number; sd: number }>;
    const { fastAccurate, slowAccurate, average, fastWrong, slowWrong, verySlow } = found;
    const text = JSON.stringify(found);
    assert.ok(fastAccurate.mean >= 75, text);
    for (const middle of [slowAccurate, average]) assert.ok(middle.mean >= 40 && middle.mean <= 65, text);
    assert.ok(fastWrong.mean <= 45 && fastWrong.mean < Math.min(slowAccurate.mean, average.mean), text);
    assert.ok(slowWrong.mean < Math.min(fastWrong.mean, verySlow.mean), text);
    assert.ok(verySlow.mean < 40, text);
    for (const { sd } of Object.values(found)) assert.ok(sd <= 11, text);
    const { pace, rapid, norm } = practise(guesser, times);
    assert.equal(computeEfficiencyIndex(pace, rapid, norm), null);
    assert.equal(missingEfficiencyReason(pace, rapid), 'rapid_answers');
    assert.ok(isRapidFlagged(rapid));
  });

test('the index exists from the third timed answer on, also without a correct one', () => {
  const [norm, answered] = [computeSkillNorm(null), [30, 30, 30]];
  const reasons = answered.map((_, i) => {
    const pace = answered
      .slice(0, i + 1)
      .reduce((last, s) => updatePace(last, false, s, norm, false), newPace);
    return [missingEfficiencyReason(pace, newRapid), computeEfficiencyIndex(pace, newRapid, norm) === null];
  });
  assert.deepEqual(reasons, [
    ['too_few_times', true],
    ['too_few_times', true],
    [null, false],
  ]);
});

test('the accuracy norm counts timed answers that are not rapid', () => {
  const answers = [
    ...indices(30).map((i) => ({ skill: 0, correct: i < 12, seconds: 50 })),
    { skill: 0, correct: true, seconds: 1 },
    { skill: 0, correct: true, seconds: 7200 },
    { skill: 0, correct: true },
  ];
  const [times] = measureTimes(answerLog(1, [answers]));
  assert.deepEqual([times?.answers, times?.correct], [30, 12]);
  assert.equal(computeSkillNorm(times ?? null).accuracy, (15 + 12) / 50);
});
