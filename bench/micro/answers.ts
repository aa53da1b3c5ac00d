import { bench, do_not_optimize, group } from 'mitata';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { newPlateau, updatePlateau } from '../../src/domain/tracing/plateau.js';
import { answerAt, inTurn, item, stepsOf } from './made.js';

/** Few enough for the processor's caches. */
const steps = stepsOf(1000);

export function answerBenches(): void {
  group('one answer', () => {
    bench('BKT: one update of mastery', chainedTrace());
    bench('plateau: one update', chainedPlateau());
    bench('answer: prediction and conditions', () => {
      const { skillId, states, answer } = nextStep();
      do_not_optimize(computeConditions(unfittedModel, skillId, item, states, answer));
    });
    bench('answer: update of all states', () => {
      const { states, answer, conditions } = nextStep();
      do_not_optimize(applyAnswer(states, answer, conditions));
    });
  });
}

const nextStep = inTurn(steps);

/** Each update needs the previous result, so V8 cannot skip it. */
function chainedTrace(): () => void {
  const nextAnswer = inTurn(Array.from({ length: 1000 }, (_, i) => answerAt(i).isCorrect));
  let mastery = defaultParameters.pInit;
  return () => {
    mastery = traceAnswer(defaultParameters, mastery, nextAnswer()).masteryAfter;
    do_not_optimize(mastery);
  };
}

function chainedPlateau(): () => void {
  const nextMastery = inTurn(steps.map(({ states }) => states.skill.mastery));
  let plateau = newPlateau;
  return () => {
    plateau = updatePlateau(plateau, nextMastery(), 0);
    do_not_optimize(plateau);
  };
}
