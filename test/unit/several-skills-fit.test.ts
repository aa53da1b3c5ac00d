/** Fits on simulated answers to questions with several skills, all of which a correct answer needs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import { type AnswerLog, numberSkillSets, selectAllLearners } from '../../src/domain/base/answer-log.js';
import type { BktParameters } from '../../src/domain/base/bkt-parameters.js';
import { priorStrengths } from '../../src/domain/base/fit-constants.js';
import { resolveQuestionModel, resolveSkillModel } from '../../src/domain/catalogue/tenant-model.js';
import { growTrees } from '../../src/domain/fit/bkt/answer-trees.js';
import { fitTrees } from '../../src/domain/fit/bkt/fit-trees.js';
import { traceLog } from '../../src/domain/fit/bkt/trace-log.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant } from '../../src/domain/fit/fit-tenant.js';
import { indices } from '../../src/lists.js';
import { answerLog, fullFitInput, type LoggedAnswer } from '../support/builders/answer-logs.js';
import { seeded } from '../support/builders/random.js';

const truth: BktParameters[] = [
  { pInit: 0.7, pLearn: 0.12, pGuess: 0.3, pSlip: 0.05, pForget: 0.01 },
  { pInit: 0.25, pLearn: 0.08, pGuess: 0.28, pSlip: 0.1, pForget: 0.01 },
  { pInit: 0.45, pLearn: 0.1, pGuess: 0.26, pSlip: 0.08, pForget: 0.01 },
  { pInit: 0.5, pLearn: 0.06, pGuess: 0.33, pSlip: 0.12, pForget: 0.01 },
  { pInit: 0.35, pLearn: 0.09, pGuess: 0.27, pSlip: 0.07, pForget: 0.01 },
  { pInit: 0.6, pLearn: 0.05, pGuess: 0.3, pSlip: 0.06, pForget: 0.01 },
];
const combinations = [
  [0, 1],
  [2, 3],
  [1, 4, 5],
];
const sets = [...truth.map((_, skill) => [skill]), ...combinations];

/** Half of the answers need several skills. `known`: true mastery of the main skill before each answer. */
function simulate(learners: number, answersEach: number, seed: number) {
  const random = seeded(seed);
  const known: boolean[] = [];
  const answers = indices(learners).map(() => {
    const mastered = truth.map(({ pInit }) => random() < pInit);
    return indices(answersEach).map((): LoggedAnswer => {
      const isCombination = random() < 0.5;
      const skill = isCombination
        ? truth.length + Math.floor(random() * combinations.length)
        : Math.floor(random() * truth.length);
      const asked = sets[skill] as number[];
      const outcomes = asked.map((one) => {
        const { pGuess, pSlip, pLearn } = truth[one] as BktParameters;
        const succeeds = random() < (mastered[one] ? 1 - pSlip : pGuess);
        if (one === asked[0]) known.push(mastered[one] as boolean);
        mastered[one] ||= random() < pLearn;
        return succeeds;
      });
      return { skill, correct: outcomes.every(Boolean) };
    });
  });
  return { log: answerLog(truth.length, answers, 0, combinations), known };
}

const fitted = ({ pGuess, pSlip, pInit, pLearn }: BktParameters) => [pGuess, pSlip, pInit, pLearn];

function computeError(parameters: readonly BktParameters[]): number {
  const errors = parameters.flatMap((one, skill) => {
    const expected = fitted(truth[skill] as BktParameters);
    return fitted(one).map((value, i) => (value - (expected[i] as number)) ** 2);
  });
  return Math.sqrt(errors.reduce((sum, error) => sum + error, 0) / errors.length);
}

/** Brier score of the main skill's mastery, from its predicted chance. */
function scoreMastery(
  log: AnswerLog,
  known: readonly boolean[],
  parameters: readonly BktParameters[],
): number {
  const model = {
    skills: parameters.map((one) => ({ parameters: one, difficultyMean: 0 })),
    difficultyScale: 0,
  };
  let sum = 0;
  traceLog(log, selectAllLearners(log), model, (index, _, __, [{ pCorrect }]) => {
    const { pGuess, pSlip } = parameters[
      (sets[log.skill[index] as number] as number[])[0] as number
    ] as BktParameters;
    const mastery = (pCorrect - pGuess) / (1 - pSlip - pGuess);
    sum += (mastery - (known[index] ? 1 : 0)) ** 2;
  });
  return sum / known.length;
}

const simulated = simulate(800, 60, 3);
const input = fullFitInput(simulated.log);

test('fitTenant recovers the parameters and the mastery of skills that questions combine', async () => {
  const { log, known } = simulated;
  const { model } = await fitTenant(input, localRunner);
  const recovered = input.skillIds.map((skillId) => resolveSkillModel(model, skillId).parameters);
  const rules = { strengths: priorStrengths, difficultyScale: 0 };
  const { skills } = await fitTrees(growTrees(log, selectAllLearners(log)), rules);
  const ignoring = skills.map(({ parameters }) => parameters);
  assert.ok(computeError(recovered) < 0.025, `${computeError(recovered)}`);
  assert.ok(computeError(ignoring) > 0.1, 'without blame for the other skills');
  const best = scoreMastery(log, known, truth);
  assert.ok(scoreMastery(log, known, recovered) < best + 0.001, `${scoreMastery(log, known, recovered)}`);
  assert.ok(scoreMastery(log, known, ignoring) > best + 0.01);

  assert.equal(model.combinations.size, combinations.length);
  const stored = encodeModel(model);
  assert.equal(encodeModel(decodeModel(stored)), stored, 'stores the combinations');
  const { combined: question } = resolveQuestionModel(model, ['skill 3', 'skill 2']);
  assert.deepEqual(question.terms, model.combinations.get('skill 2\nskill 3')?.terms, 'in any order');
  const { combined: unknown } = resolveQuestionModel(model, ['skill 0', 'skill 5']);
  const [first, last] = [resolveSkillModel(model, 'skill 0'), resolveSkillModel(model, 'skill 5')];
  assert.equal(unknown.terms[0], ((first.terms[0] as number) + (last.terms[0] as number)) / 2);
});

test('numberSkillSets counts combinations beyond the limit as their first skill', () => {
  const { numbers, members } = numberSkillSets([[1, 0], [2], [2, 1], [0]], 3, 1);
  assert.deepEqual(numbers, [3, 2, 2, 0]);
  assert.deepEqual([...members.skills.subarray(3)], [1, 0]);
  assert.equal(members.starts.length, 5);
});
