import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AnswerLog, selectAllLearners, selectLearners } from '../../src/domain/base/answer-log.js';
import { type BktParameters, defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { fitPriorMeans, priorStrengths } from '../../src/domain/base/fit-constants.js';
import { growTrees } from '../../src/domain/fit/bkt/answer-trees.js';
import {
  type BktFit,
  type BktFitOptions,
  chooseFitOptions,
  fitSkillRange,
  fitTrees,
  isHeldOut,
} from '../../src/domain/fit/bkt/fit-trees.js';
import { compareHeldOutLoss, traceLog } from '../../src/domain/fit/bkt/trace-log.js';
import { canPublish } from '../../src/domain/fit/fit-parameters.js';
import { syntheticLog } from '../support/builders/answer-logs.js';
import { seeded } from '../support/builders/random.js';

const options: BktFitOptions = { strengths: priorStrengths, difficultyScale: 0 };

const fitBkt = (log: AnswerLog, fitted: BktFitOptions): Promise<BktFit> =>
  fitTrees(growTrees(log, selectAllLearners(log), { withDifficulty: fitted.difficultyScale > 0 }), fitted);

/** Skills as a tenant might have them, within the bounds of fits. */
function skillsOf(count: number, seed: number): BktParameters[] {
  const random = seeded(seed);
  const between = (low: number, high: number): number => low + (high - low) * random();
  return Array.from({ length: count }, () => ({
    pInit: between(0.15, 0.6),
    pLearn: between(0.04, 0.15),
    pGuess: between(0.2, 0.38),
    pSlip: between(0.04, 0.14),
    pForget: between(0.01, 0.03),
  }));
}

const model = (parameters: readonly BktParameters[]) => ({
  skills: parameters.map((one) => ({ parameters: one, difficultyMean: 0 })),
  difficultyScale: 0,
});

function lossesOf(log: AnswerLog, candidate: readonly BktParameters[], current: readonly BktParameters[]) {
  const compared = compareHeldOutLoss(log, selectAllLearners(log), model(candidate), model(current));
  const mean = (of: 'newLogLoss' | 'oldLogLoss') =>
    compared.reduce((sum, skill) => sum + (skill[of] ?? 0), 0) / compared.length;
  return { candidate: mean('newLogLoss'), current: mean('oldLogLoss') };
}

test('on new learners a fit beats the defaults from few learners on, and nears the truth with many', async () => {
  const truth = skillsOf(12, 1);
  const fresh = syntheticLog({ learners: 300, truth, seed: 2 });
  for (const [learners, fromTruth] of [
    [20, 0.02],
    [200, 0.004],
    [1000, 0.0015],
  ] as const) {
    const { skills } = await fitBkt(syntheticLog({ learners, truth, seed: 3 }), options);
    const fitted = skills.map(({ parameters }) => parameters);
    const against = lossesOf(fresh, fitted, truth);
    assert.ok(against.candidate - against.current < fromTruth, `${learners}: ${JSON.stringify(against)}`);
    const start = lossesOf(
      fresh,
      fitted,
      truth.map(() => defaultParameters),
    );
    assert.ok(start.candidate < start.current, `${learners}: ${JSON.stringify(start)}`);
  }
});

test('the same answers give the same fit, whole or by ranges of skills', async () => {
  const log = syntheticLog({ learners: 220, truth: skillsOf(7, 4), seed: 5 });
  const trees = growTrees(log, selectAllLearners(log));
  const whole = await fitTrees(trees, options);
  const ranges = [
    [0, 3],
    [3, 4],
    [4, 7],
  ] as const;
  const inParts = await fitTrees(trees, options, async (round) =>
    ranges.flatMap(([from, to]) => fitSkillRange(trees, from, to, round)),
  );
  assert.deepEqual(inParts, whole);
  assert.deepEqual(await fitBkt(log, options), whole);
  const observations = whole.skills.reduce((total, skill) => total + skill.observations, 0);
  assert.equal(observations, log.skill.length);
});

test('skills with few learners are served the mean of the fitted ones; with too few of those the defaults', async () => {
  const log = syntheticLog({ learners: 30, truth: skillsOf(7, 6), seed: 7 });
  const few = (limit: number): AnswerLog => {
    // Skill 0 has answers of the first 10 learners only; beyond the limit skills have none.
    const skill = log.skill.map((one, place) =>
      one > limit || (one === 0 && place >= (log.starts[10] as number)) ? 1 : one,
    );
    return { ...log, skill };
  };
  const { skills, prior } = await fitBkt(few(6), options);
  assert.deepEqual(
    skills.map(({ source }) => source),
    ['prior', ...Array(6).fill('fitted')],
  );
  const mean = skills.slice(1).reduce((sum, { parameters }) => sum + parameters.pInit, 0) / 6;
  assert.ok(Math.abs(prior.parameters.pInit - mean) < 1e-12);
  assert.deepEqual(skills[0]?.parameters, prior.parameters);
  const tiny = await fitBkt(few(3), options);
  assert.deepEqual(tiny.means, fitPriorMeans);
  assert.deepEqual(
    tiny.skills.map(({ source }) => source),
    ['default', 'fitted', 'fitted', 'fitted', 'default', 'default', 'default'],
  );
  assert.deepEqual(tiny.skills[6]?.parameters, defaultParameters);
});

test('a warm start takes fewer iterations; a cold one beside it saves a fit from a bad start', async () => {
  const log = syntheticLog({ learners: 400, truth: skillsOf(6, 8), seed: 9 });
  const cold = await fitBkt(log, options);
  const warm = cold.skills.map(({ parameters }) => parameters);
  const iterations = ({ skills }: BktFit): number => skills.reduce((sum, skill) => sum + skill.iterations, 0);
  assert.ok(iterations(await fitBkt(log, { ...options, warm })) < iterations(cold));
  const bad = warm.map(() => ({ pInit: 0.9, pLearn: 0.005, pGuess: 0.02, pSlip: 0.2, pForget: 0 }));
  const lossFrom = async (coldStart: boolean): Promise<number> => {
    const { skills } = await fitBkt(log, { ...options, warm: bad, coldStart });
    return lossesOf(
      log,
      skills.map(({ parameters }) => parameters),
      warm,
    ).candidate;
  };
  assert.ok((await lossFrom(true)) <= (await lossFrom(false)) + 1e-6);
});

test('options: few learners keep the strongest prior, many give the data more say', async () => {
  const easy = { pInit: 0.89, pLearn: 0.005, pGuess: 0.4, pSlip: 0.15, pForget: 0.03 };
  const hard = { pInit: 0.03, pLearn: 0.15, pGuess: 0.2, pSlip: 0.03, pForget: 0.01 };
  const unlike = Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? easy : hard));
  const plan = { learners: 60, truth: unlike, seed: 12, attempts: [2, 6] } as const;
  const few = await chooseFitOptions(syntheticLog({ learners: 4, truth: skillsOf(8, 10), seed: 11 }));
  assert.deepEqual(few.strengths, priorStrengths);
  const many = await chooseFitOptions(syntheticLog(plan));
  assert.ok(many.strengths.pInit < priorStrengths.pInit);
  assert.equal(many.difficultyScale, 0);
  const again = await chooseFitOptions(syntheticLog(plan));
  assert.deepEqual(many, again);
});

test('options: the scale of the difficulty is found where difficulties are supplied', async () => {
  for (const difficultyScale of [0, 0.5, 0.75]) {
    const log = syntheticLog({ learners: 250, truth: skillsOf(6, 13), seed: 14, difficultyScale });
    assert.equal((await chooseFitOptions(log)).difficultyScale, difficultyScale);
  }
});

test('a fifth of the learners is held out, always the same ones', () => {
  const heldOut = Array.from({ length: 10_000 }, (_, learner) => isHeldOut(learner)).filter(Boolean).length;
  assert.ok(heldOut > 1850 && heldOut < 2150, `${heldOut}`);
});

test('parameters that foretell held-out answers worse may not be published, others may', () => {
  const truth = skillsOf(3, 15);
  const log = syntheticLog({ learners: 200, truth, seed: 16 });
  const worse = [...truth.slice(0, 2), { pInit: 0.9, pLearn: 0.005, pGuess: 0.02, pSlip: 0.01, pForget: 0 }];
  const heldOut = selectLearners(log, isHeldOut);
  const compared = compareHeldOutLoss(log, heldOut, model(worse), model(truth));
  assert.deepEqual(compared.map(canPublish), [true, true, false]);
  assert.equal(compared[0]?.newLogLoss, compared[0]?.oldLogLoss);
  const answers = compared.reduce((sum, skill) => sum + skill.answers, 0);
  let traced = 0;
  traceLog(log, heldOut, model(truth), () => traced++);
  assert.equal(answers, traced);
  const nobody = compareHeldOutLoss(log, new Uint8Array(200), model(worse), model(truth));
  assert.deepEqual(nobody[0], { answers: 0, oldLogLoss: null, newLogLoss: null });
  assert.deepEqual(nobody.map(canPublish), [true, true, true]);
});

test('a prediction rests on earlier answers only', () => {
  const truth = skillsOf(2, 17);
  const log = syntheticLog({ learners: 20, truth, seed: 18 });
  const predict = (of: AnswerLog): number[] => {
    const told: number[] = [];
    traceLog(of, selectAllLearners(of), model(truth), (place, pCorrect) => {
      told[place] = pCorrect;
    });
    return told;
  };
  const before = predict(log);
  fc.assert(
    fc.property(fc.nat(log.skill.length - 1), (from) => {
      const changed = { ...log, correct: log.correct.map((y, place) => (place >= from ? 1 - y : y)) };
      assert.deepEqual(predict(changed).slice(0, from + 1), before.slice(0, from + 1));
    }),
  );
});
