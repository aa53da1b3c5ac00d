import {
  type AnswerLog,
  hasDifficulty,
  iterateLearnerRanges,
  type LearnerSelection,
} from '../../base/answer-log.js';
import type { BktParameters } from '../../base/bkt-parameters.js';
import { toDay } from '../../base/common.js';
import { computeAnswerLoss } from '../../base/prediction-metrics.js';
import { computeDifficultyShift, computeEffectiveMastery, traceAnswer } from '../../tracing/bkt.js';

export interface TracedModel {
  readonly skills: readonly { readonly parameters: BktParameters; readonly difficultyMean: number }[];
  readonly difficultyScale: number;
}

const findSkill = (log: AnswerLog, index: number, { skills }: TracedModel) =>
  skills[log.skill[index] as number] as TracedModel['skills'][number];

/** Difficulty centred per skill; null if not supplied. */
export function computeDifficulty(log: AnswerLog, index: number, model: TracedModel): number | null {
  const difficulty = log.difficulty[index] as number;
  return Number.isNaN(difficulty) ? null : difficulty - findSkill(log, index, model).difficultyMean;
}

export function computeShift(log: AnswerLog, index: number, model: TracedModel): number {
  const difficulty = computeDifficulty(log, index, model);
  if (model.difficultyScale === 0 || difficulty === null) return 0;
  const { parameters } = findSkill(log, index, model);
  return computeDifficultyShift(parameters, difficulty, model.difficultyScale);
}

/** By answer index; null without difficulties. */
export const computeShifts = (log: AnswerLog, model: TracedModel): Float32Array | null =>
  hasDifficulty(log) ? Float32Array.from(log.skill, (_, index) => computeShift(log, index, model)) : null;

export const createAttemptHistory = (learner: number, mastery = 0) => ({
  learner,
  mastery,
  attempts: 0,
  lastAttemptAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
});

type AttemptHistory = ReturnType<typeof createAttemptHistory>;

/** @param at Unix milliseconds, ascending */
export function recordAttempt(history: AttemptHistory, at: number, isCorrect: boolean): void {
  const day = toDay(at);
  history.attempts++;
  history.lastAttemptAt = at;
  if (!isCorrect || day <= history.lastCorrectDay) return;
  history.correctDays++;
  history.lastCorrectDay = day;
}

export function traceLog(
  log: AnswerLog,
  learners: LearnerSelection,
  model: TracedModel,
  visit: (index: number, pCorrect: number, learner: number) => void,
  from = 0,
  to = learners.length,
): void {
  const states = model.skills.map(() => createAttemptHistory(-1));
  for (const { learner, start, end } of iterateLearnerRanges(log, learners, from, to)) {
    for (let index = start; index < end; index++) {
      const skill = log.skill[index] as number;
      const { parameters } = findSkill(log, index, model);
      let state = states[skill] as AttemptHistory;
      if (state.learner !== learner) state = createAttemptHistory(learner, parameters.pInit);
      states[skill] = state;
      const at = Math.max(state.lastAttemptAt, log.at[index] as number);
      const isCorrect = log.correct[index] === 1;
      const before = computeEffectiveMastery(parameters.pInit, state, at);
      const shift = computeShift(log, index, model);
      const { masteryAfter, pCorrect } = traceAnswer(parameters, before, isCorrect, shift);
      state.mastery = masteryAfter;
      recordAttempt(state, at, isCorrect);
      visit(index, pCorrect, learner);
    }
  }
}

export function sumLosses(
  log: AnswerLog,
  learners: LearnerSelection,
  model: TracedModel,
  groups: number,
  groupOf: (index: number, learner: number) => number,
) {
  const losses = new Float64Array(groups);
  const answers = new Uint32Array(groups);
  traceLog(log, learners, model, (index, pCorrect, learner) => {
    const group = groupOf(index, learner);
    losses[group] = (losses[group] as number) + computeAnswerLoss(pCorrect, log.correct[index] as number);
    answers[group] = (answers[group] as number) + 1;
  });
  return { losses, answers };
}

/** Losses on the same held-out answers; null without answers. */
export interface LossComparison {
  readonly answers: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
}

export function compareHeldOutLoss(
  log: AnswerLog,
  learners: LearnerSelection,
  candidate: TracedModel,
  current: TracedModel,
): LossComparison[] {
  const bySkill = (model: TracedModel) =>
    sumLosses(log, learners, model, log.skills, (index) => log.skill[index] as number);
  const [after, before] = [bySkill(candidate), bySkill(current)];
  const mean = (losses: Float64Array, skill: number, answers: number) =>
    answers === 0 ? null : (losses[skill] as number) / answers;
  return Array.from(after.answers, (answers, skill) => ({
    answers,
    oldLogLoss: mean(before.losses, skill, answers),
    newLogLoss: mean(after.losses, skill, answers),
  }));
}
