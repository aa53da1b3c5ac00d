import { test } from 'node:test';
import { defaultParameters, difficultyConstants } from '../../src/domain/base/bkt-parameters.js';
import { computeDifficultyShift, pStar, shiftGuessSlip, traceAnswer } from '../../src/domain/tracing/bkt.js';
import { close, vectors } from './vectors.js';

const shiftOf = (difficulty: number | null): number =>
  difficulty === null ? 0 : computeDifficultyShift(defaultParameters, difficulty, difficultyConstants.scale);

for (const [name, sequences] of Object.entries({
  plain: vectors.bkt_plain,
  'by difficulty': vectors.bkt_difficulty,
})) {
  for (const [i, sequence] of sequences.entries()) {
    test(`BKT, ${name}, sequence ${i + 1}: ${sequence.map(({ y }) => y).join('')}`, () => {
      let mastery = defaultParameters.pInit;
      for (const { y, b, mastery_before, p_correct, posterior, mastery_after } of sequence) {
        close(mastery, mastery_before, 'mastery before');
        const step = traceAnswer(defaultParameters, mastery, y === 1, shiftOf(b));
        close(step.pCorrect, p_correct, 'p correct');
        close(step.posterior, posterior, 'posterior');
        close(step.masteryAfter, mastery_after, 'mastery after');
        mastery = step.masteryAfter;
      }
    });
  }
}

for (const { b, guess, slip, bf_correct, bf_incorrect } of vectors.item_guess_slip) {
  test(`guess and slip at difficulty ${b}`, () => {
    const { pGuess, pSlip } = shiftGuessSlip(defaultParameters, shiftOf(b));
    close(pGuess, guess, 'guess');
    close(pSlip, slip, 'slip');
    close((1 - pSlip) / pGuess, bf_correct, 'Bayes factor of a right answer');
    close(pSlip / (1 - pGuess), bf_incorrect, 'Bayes factor of a wrong answer');
  });
}

for (const { L, y, w, after } of vectors.bkt_weight) {
  test(`BKT with weight ${w} at mastery ${L}, answer ${y}`, () => {
    close(traceAnswer(defaultParameters, L, y === 1, 0, true, { weight: w }).masteryAfter, after);
  });
}

for (const { L, y, conf, after } of vectors.bkt_confidence) {
  test(`BKT with confidence ${conf} at mastery ${L}, answer ${y}`, () => {
    close(traceAnswer(defaultParameters, L, y === 1, 0, true, { confidence: conf }).masteryAfter, after);
  });
}

for (const { L, y, after, guard = true } of vectors.bkt_extremes) {
  test(`BKT ${guard ? 'with' : 'without'} the guard at mastery ${L}, answer ${y}`, () => {
    close(traceAnswer(defaultParameters, L, y === 1, 0, guard).masteryAfter, after);
  });
}

test('P* of the defaults', () => close(pStar(defaultParameters), vectors.p_star.defaults));
