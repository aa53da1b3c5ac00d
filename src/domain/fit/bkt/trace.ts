import { type AnswerLog, hasDifficulty, type Learners, placesByLearner } from '../../base/answer-log.js';
import type { BktParameters } from '../../base/bkt-parameters.js';
import { dayOf } from '../../base/common.js';
import { answerLoss } from '../../base/metrics.js';
import { difficultyShift, effectiveMastery, traceAnswer } from '../../tracing/bkt.js';

export interface TracedModel {
  readonly skills: readonly { readonly parameters: BktParameters; readonly difficultyMean: number }[];
  readonly difficultyScale: number;
}

const skillAt = (log: AnswerLog, place: number, { skills }: TracedModel) =>
  skills[log.skill[place] as number] as TracedModel['skills'][number];

/** Difficulty centred per skill; null if not supplied. */
export function difficultyAt(log: AnswerLog, place: number, model: TracedModel): number | null {
  const difficulty = log.difficulty[place] as number;
  return Number.isNaN(difficulty) ? null : difficulty - skillAt(log, place, model).difficultyMean;
}

export function shiftAt(log: AnswerLog, place: number, model: TracedModel): number {
  const difficulty = difficultyAt(log, place, model);
  if (model.difficultyScale === 0 || difficulty === null) return 0;
  const { parameters } = skillAt(log, place, model);
  return difficultyShift(parameters, difficulty, model.difficultyScale);
}

/** By answer index; null without difficulties. */
export const shiftsOf = (log: AnswerLog, model: TracedModel): Float32Array | null =>
  hasDifficulty(log) ? Float32Array.from(log.skill, (_, place) => shiftAt(log, place, model)) : null;

export const newPractice = (learner: number, mastery = 0) => ({
  learner,
  mastery,
  attempts: 0,
  lastAttemptAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
});

type Practice = ReturnType<typeof newPractice>;

/** @param at Unix milliseconds, ascending */
export function practise(practice: Practice, at: number, isCorrect: boolean): void {
  const day = dayOf(at);
  practice.attempts++;
  practice.lastAttemptAt = at;
  if (!isCorrect || day <= practice.lastCorrectDay) return;
  practice.correctDays++;
  practice.lastCorrectDay = day;
}

export function traceLog(
  log: AnswerLog,
  learners: Learners,
  model: TracedModel,
  visit: (place: number, pCorrect: number, learner: number) => void,
  from = 0,
  to = learners.length,
): void {
  const states = model.skills.map(() => newPractice(-1));
  for (const { learner, start, end } of placesByLearner(log, learners, from, to)) {
    for (let place = start; place < end; place++) {
      const skill = log.skill[place] as number;
      const { parameters } = skillAt(log, place, model);
      let state = states[skill] as Practice;
      if (state.learner !== learner) state = newPractice(learner, parameters.pInit);
      states[skill] = state;
      const at = Math.max(state.lastAttemptAt, log.at[place] as number);
      const isCorrect = log.correct[place] === 1;
      const before = effectiveMastery(parameters.pInit, state, at);
      const shift = shiftAt(log, place, model);
      const { masteryAfter, pCorrect } = traceAnswer(parameters, before, isCorrect, shift);
      state.mastery = masteryAfter;
      practise(state, at, isCorrect);
      visit(place, pCorrect, learner);
    }
  }
}

export function sumLosses(
  log: AnswerLog,
  learners: Learners,
  model: TracedModel,
  groups: number,
  groupOf: (place: number, learner: number) => number,
) {
  const losses = new Float64Array(groups);
  const answers = new Uint32Array(groups);
  traceLog(log, learners, model, (place, pCorrect, learner) => {
    const group = groupOf(place, learner);
    losses[group] = (losses[group] as number) + answerLoss(pCorrect, log.correct[place] as number);
    answers[group] = (answers[group] as number) + 1;
  });
  return { losses, answers };
}

/** Losses on the same held-out answers; null without answers. */
export interface Comparison {
  readonly answers: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
}

export function heldOutLogLoss(
  log: AnswerLog,
  learners: Learners,
  candidate: TracedModel,
  current: TracedModel,
): Comparison[] {
  const bySkill = (model: TracedModel) =>
    sumLosses(log, learners, model, log.skills, (place) => log.skill[place] as number);
  const [after, before] = [bySkill(candidate), bySkill(current)];
  const mean = (losses: Float64Array, skill: number, answers: number) =>
    answers === 0 ? null : (losses[skill] as number) / answers;
  return Array.from(after.answers, (answers, skill) => ({
    answers,
    oldLogLoss: mean(before.losses, skill, answers),
    newLogLoss: mean(after.losses, skill, answers),
  }));
}
