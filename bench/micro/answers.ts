import { bench, do_not_optimize, group } from 'mitata';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { mapNonEmpty } from '../../src/domain/base/common.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import { newPlateau, updatePlateau } from '../../src/domain/tracing/plateau.js';
import type { Step } from '../simulation/served-learner.js';
import { createAnswer, cycleThrough, generateSteps, sampleItem } from './generated-learners.js';

/** Few enough for the processor's caches. */
const steps = generateSteps(1000);
const threeSkillSteps = steps.map(combineSteps);

export function answerBenches(): void {
  group('one answer', () => {
    bench('BKT: one update of mastery', createTraceChain());
    bench('plateau: one update', createPlateauChain());
    bench('answer: prediction and conditions', () => {
      const { skillId, states, answer } = nextStep();
      do_not_optimize(computeConditions(unfittedModel, [skillId], sampleItem, states, answer));
    });
    bench('answer: update of all states', () => {
      const { states, answer, conditions } = nextStep();
      do_not_optimize(applyAnswer(states, answer, conditions));
    });
    bench('answer on three skills: prediction and conditions', () => {
      const { skillIds, states, answer } = nextThreeSkillStep();
      do_not_optimize(computeConditions(unfittedModel, skillIds, sampleItem, states, answer));
    });
    bench('answer on three skills: update of all states', () => {
      const { states, answer, conditions } = nextThreeSkillStep();
      do_not_optimize(applyAnswer(states, answer, conditions));
    });
  });
}

const nextStep = cycleThrough(steps);
const nextThreeSkillStep = cycleThrough(threeSkillSteps);

/** The step with the skills of the next two steps. */
function combineSteps({ states, answer }: Step, i: number) {
  const others = [1, 2].map((next) => steps[(i + next) % steps.length] as Step);
  const skillIds = mapNonEmpty([steps[i] as Step, ...others], ({ skillId }) => skillId);
  const combined = {
    ...states,
    keys: hashQuestionKeys(skillIds, `item-${i % 200}`),
    skills: mapNonEmpty([steps[i] as Step, ...others], (step) => step.states.skills[0]),
  };
  const conditions = computeConditions(unfittedModel, skillIds, sampleItem, combined, answer);
  return { skillIds, states: combined, answer, conditions };
}

/** Each update needs the previous result, so V8 cannot skip it. */
function createTraceChain(): () => void {
  const nextAnswer = cycleThrough(Array.from({ length: 1000 }, (_, i) => createAnswer(i).isCorrect));
  let mastery = defaultParameters.pInit;
  return () => {
    mastery = traceAnswer(defaultParameters, mastery, nextAnswer()).masteryAfter;
    do_not_optimize(mastery);
  };
}

function createPlateauChain(): () => void {
  const nextMastery = cycleThrough(steps.map(({ states }) => states.skills[0].mastery));
  let plateau = newPlateau;
  return () => {
    plateau = updatePlateau(plateau, nextMastery(), 0);
    do_not_optimize(plateau);
  };
}
