import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type BktParameters,
  defaultParameters,
  manualBounds,
  manualForgetBounds,
  masteryThresholds,
} from '../../src/domain/base/bkt-parameters.js';
import {
  defaultSkillSetting,
  emptyCatalogue,
  findParameterProblem,
  findPlacement,
} from '../../src/domain/catalogue/catalogue.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { between, rounding } from '../support/builders/arbitraries.js';

const one = between(manualBounds.low, manualBounds.high);
const anyParameters: fc.Arbitrary<BktParameters> = fc.record({
  pInit: one,
  pLearn: fc.oneof(one, between(0.001, 0.1)),
  pGuess: fc.oneof(one, between(0.001, 0.3)),
  pSlip: fc.oneof(one, between(0.001, 0.3)),
  pForget: fc.oneof(fc.constant(0), between(manualForgetBounds.low, manualForgetBounds.high)),
});

test('with parameters that are taken, the first answer moves mastery the way it should', () => {
  let taken = 0;
  fc.assert(
    fc.property(anyParameters, (parameters) => {
      if (findParameterProblem(parameters) !== null) return;
      taken += 1;
      const after = (isCorrect: boolean): number =>
        traceAnswer(parameters, parameters.pInit, isCorrect, 0, false).masteryAfter;
      const reached = parameters.pForget === 0 ? 0.998 : masteryThresholds.mastery - rounding;
      assert.ok(after(true) > Math.min(parameters.pInit, reached));
      assert.ok(after(false) < parameters.pInit);
    }),
    { numRuns: 2000 },
  );
  assert.ok(taken > 200, `${taken} of 2000 were taken`);
});

test('the bound that is told is allowed, as far as there is one', () => {
  fc.assert(
    fc.property(anyParameters, (parameters) => {
      const misfit = findParameterProblem(parameters);
      if (misfit === null) return;
      const bound = Number(/must be (?:at most|below) ([\d.]+)[,:]/.exec(misfit.message)?.[1]);
      const inside = misfit.parameter === 'pSlip' ? bound : bound - 0.0001;
      if (inside < manualBounds.low) return;
      const mended = findParameterProblem({ ...parameters, [misfit.parameter]: inside });
      assert.notEqual(mended?.parameter, misfit.parameter);
    }),
    { numRuns: 2000 },
  );
});

test('the defaults, and margins to the last decimal', () => {
  assert.equal(findParameterProblem(defaultParameters), null);
  for (let guess = 0.002; guess < 0.949; guess += 0.001) {
    const parameters = { pInit: 0.999, pLearn: 0.001, pGuess: guess, pSlip: 0.95 - guess, pForget: 0 };
    assert.equal(findParameterProblem(parameters), null, `${guess}`);
    assert.equal(
      findParameterProblem({ ...parameters, pSlip: 0.9501 - guess })?.parameter,
      'pSlip',
      `${guess}`,
    );
  }
  const even = { pInit: 0.5, pLearn: 0.01, pGuess: 0.5, pSlip: 0.5, pForget: 0 };
  assert.equal(findParameterProblem(even)?.parameter, 'pSlip');
});

test('a skill that was never set is placed as one that is set to nothing', () => {
  const { section, weight } = defaultSkillSetting;
  assert.deepEqual(findPlacement(emptyCatalogue, 'a'), { section, weight });
});
