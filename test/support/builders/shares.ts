import type { AnswerLog } from '../../../src/domain/base/answer-log.js';
import type { AccuracyCase, TracedCase } from '../../../src/domain/fit/accuracy/accuracy-cases.js';
import type { AccuracySubject } from '../../../src/domain/prediction/accuracy-model.js';
import {
  type LearnerTrace,
  newLearnerTrace,
  newSkillTrace,
  updateTraces,
} from '../../../src/domain/tracing/traces.js';
import { computeRecentShare } from '../../../src/domain/tracing/trend.js';
import { answerLog, type LoggedAnswer } from './answer-logs.js';

/** A learner's trace after answers on questions as hard as the mean. */
function traceOf(answers: readonly boolean[]): LearnerTrace {
  let traces = { learner: newLearnerTrace, skill: newSkillTrace, item: null };
  for (const [i, isCorrect] of answers.entries()) {
    const next = updateTraces(
      traces,
      { skill: 1, item: 0 },
      { isCorrect, occurredAt: 1000 * i },
      i + 1,
      i,
      0,
    );
    traces = { ...next, item: null };
  }
  return traces.learner;
}

export interface SharePlan {
  readonly learners: number;
  readonly answersEach: number;
  /** Chance of a right answer of a learner; the same for all of the learner's answers. */
  readonly chance: (random: () => number) => number;
  readonly random: () => number;
}

/** Answers without times of learners whose chance of a right answer never changes. */
export function steadyLog({ learners, answersEach, chance, random }: SharePlan): AnswerLog {
  const all = Array.from({ length: learners }, () => {
    const own = chance(random);
    return Array.from({ length: answersEach }, (): LoggedAnswer => ({ skill: 0, correct: random() < own }));
  });
  return answerLog(1, all);
}

/** A learner after these answers, as forecasts look at one. */
export const subjectAfter = (answers: readonly boolean[]): AccuracySubject => ({
  trace: traceOf(answers),
  trend: { share: computeRecentShare(Uint8Array.from(answers, Number)), answers: answers.length },
});

/** The cases with the learner's states at their moment. */
export function tracedCases(log: AnswerLog, cases: readonly AccuracyCase[]): TracedCase[] {
  const subjects = new Map<number, AccuracySubject>();
  return cases.map((one) => {
    const start = log.starts[one.learner] as number;
    const place = start + one.history;
    const answers = [...log.correct.subarray(start, place)].map((c) => c === 1);
    const subject = subjects.get(place) ?? subjectAfter(answers);
    subjects.set(place, subject);
    return { ...one, ...subject };
  });
}
