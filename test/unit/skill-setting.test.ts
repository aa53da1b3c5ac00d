import assert from 'node:assert/strict';
import { test } from 'node:test';
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
import { fc, forRuns } from '../support/builders/properties.js';

const one = between(manualBounds.low, manualBounds.high);
const anyParameters: fc.Arbitrary<BktParameters> = fc.record({
  pInit: one,
  pLearn: fc.oneof(one, between(0.001, 0.1)),
  pGuess: fc.oneof(one, between(0.001, 0.3)),
  pSlip: fc.oneof(one, between(0.001, 0.3)),
  pForget: fc.oneof(fc.constant(0), between(manualForgetBounds.low, manualForgetBounds.high)),
});

test('findParameterProblem accepts only parameters with which the first answer moves mastery as expected', () => {
  let accepted = 0;
  forRuns(500, anyParameters, (parameters) => {
    if (findParameterProblem(parameters) !== null) return;
    accepted += 1;
    const after = (isCorrect: boolean): number =>
      traceAnswer(parameters, parameters.pInit, isCorrect, 0, false).masteryAfter;
    const reached = parameters.pForget === 0 ? 0.998 : masteryThresholds.mastery - rounding;
    assert.ok(after(true) > Math.min(parameters.pInit, reached));
    assert.ok(after(false) < parameters.pInit);
  });
  assert.ok(accepted > 50, `${accepted} of 500 were accepted`);
});

test('findParameterProblem names a limit that it accepts', () => {
  forRuns(500, anyParameters, (parameters) => {
    const problem = findParameterProblem(parameters);
    if (problem === null) return;
    const limit = Number(/must be (?:at most|below) ([\d.]+)[,:]/.exec(problem.message)?.[1]);
    const inside = problem.parameter === 'pSlip' ? limit : limit - 0.0001;
    if (inside < manualBounds.low) return;
    const corrected = findParameterProblem({ ...parameters, [problem.parameter]: inside });
    assert.notEqual(corrected?.parameter, problem.parameter);
  });
});

test('findParameterProblem accepts the defaults and values up to the last decimal of a limit', () => {
  assert.equal(findParameterProblem(defaultParameters), null);
  for (let guess = 0.002; guess < 0.949; guess += 0.01) {
    const parameters = { pInit: 0.999, pLearn: 0.001, pGuess: guess, pSlip: 0.95 - guess, pForget: 0 };
    assert.equal(findParameterProblem(parameters), null, `${guess}`);
    const problem = findParameterProblem({ ...parameters, pSlip: 0.9501 - guess });
    assert.equal(problem?.parameter, 'pSlip', `${guess}`);
  }
  const even = { pInit: 0.5, pLearn: 0.01, pGuess: 0.5, pSlip: 0.5, pForget: 0 };
  assert.equal(findParameterProblem(even)?.parameter, 'pSlip');
});

test('findPlacement returns the default section and weight for an unconfigured skill', () => {
  const { section, weight } = defaultSkillSetting;
  assert.deepEqual(findPlacement(emptyCatalogue, 'a'), { section, weight });
});
