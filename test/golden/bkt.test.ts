import { test } from 'node:test';
import { traceAnswer } from '../../src/domain/bkt.js';
import { defaultParameters } from '../../src/domain/params.js';
import { close, vectors } from './vectors.js';

for (const [i, sequence] of vectors.bkt_plain.entries()) {
  test(`plain BKT, sequence ${i + 1}: ${sequence.map(({ y }) => y).join('')}`, () => {
    let mastery = defaultParameters.pInit;
    for (const { y, mastery_before, p_correct, posterior, mastery_after } of sequence) {
      close(mastery, mastery_before, 'mastery before');
      const step = traceAnswer(defaultParameters, mastery, y === 1);
      close(step.pCorrect, p_correct, 'p correct');
      close(step.posterior, posterior, 'posterior');
      close(step.masteryAfter, mastery_after, 'mastery after');
      mastery = step.masteryAfter;
    }
  });
}

for (const { L, y, after } of vectors.bkt_extremes.filter(({ guard }) => guard !== false)) {
  test(`BKT with the guard at mastery ${L}, answer ${y}`, () => {
    close(traceAnswer(defaultParameters, L, y === 1).masteryAfter, after);
  });
}
