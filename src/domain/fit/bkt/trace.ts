/** Traces a log with given parameters, by the very rule that serves, and compares two models by it. */

import { type AnswerLog, hasDifficulty, type Learners, placesByLearner } from '../../base/answer-log.js';
import { dayOf } from '../../base/days.js';
import { answerLoss } from '../../base/metrics.js';
import type { BktParameters, FitBounds } from '../../base/params.js';
import { difficultyShift, traceAnswer } from '../../tracing/bkt.js';
import { effectiveMastery } from '../../tracing/forgetting.js';

/** Parameters of all skills, as far as tracing needs them. */
export interface TracedModel {
  readonly skills: readonly TracedSkill[];
  readonly difficultyScale: number;
  readonly bounds: FitBounds;
}

interface TracedSkill {
  readonly parameters: BktParameters;
  readonly difficultyMean: number;
}

const skillAt = (log: AnswerLog, place: number, { skills }: TracedModel): TracedSkill =>
  skills[log.skill[place] as number] as TracedSkill;

/** Difficulty of the answer's question less the skill's mean; null where none was supplied. */
export function difficultyAt(log: AnswerLog, place: number, model: TracedModel): number | null {
  const difficulty = log.difficulty[place] as number;
  return Number.isNaN(difficulty) ? null : difficulty - skillAt(log, place, model).difficultyMean;
}

/** Logit shift by the difficulty of the answer's question; 0 where none was supplied. */
export function shiftAt(log: AnswerLog, place: number, model: TracedModel): number {
  const difficulty = difficultyAt(log, place, model);
  if (model.difficultyScale === 0 || difficulty === null) return 0;
  const { parameters } = skillAt(log, place, model);
  return difficultyShift(parameters, difficulty, model.difficultyScale, model.bounds);
}

/** The shifts of all answers, by place; null in a log without difficulties. */
export const shiftsOf = (log: AnswerLog, model: TracedModel): Float32Array | null =>
  hasDifficulty(log) ? Float32Array.from(log.skill, (_, place) => shiftAt(log, place, model)) : null;

interface Tracing {
  learner: number;
  mastery: number;
  attempts: number;
  lastAttemptAt: number;
  correctDays: number;
  lastCorrectDay: number;
}

/** @param pCorrect predicted from the learner's earlier answers */
export type TraceVisitor = (place: number, pCorrect: number, learner: number) => void;

/** Traces every answer of these learners; of a range of them alone where `from` and `to` are given. */
export function traceLog(
  log: AnswerLog,
  learners: Learners,
  model: TracedModel,
  visit: TraceVisitor,
  from = 0,
  to = learners.length,
): void {
  const states = model.skills.map(() => newTracing(-1, 0));
  for (const { learner, start, end } of placesByLearner(log, learners, from, to)) {
    for (let place = start; place < end; place++) {
      const skill = log.skill[place] as number;
      const { parameters } = skillAt(log, place, model);
      const known = states[skill] as Tracing;
      const state = known.learner === learner ? known : newTracing(learner, parameters.pInit);
      states[skill] = state;
      visit(place, traceInto(state, log, place, parameters, shiftAt(log, place, model)), learner);
    }
  }
}

const newTracing = (learner: number, pInit: number): Tracing => ({
  learner,
  mastery: pInit,
  attempts: 0,
  lastAttemptAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
});

function traceInto(
  state: Tracing,
  log: AnswerLog,
  place: number,
  parameters: BktParameters,
  shift: number,
): number {
  const at = Math.max(state.lastAttemptAt, log.at[place] as number);
  const isCorrect = log.correct[place] === 1;
  const before = effectiveMastery(parameters.pInit, state, at);
  const step = traceAnswer(parameters, before, isCorrect, { difficultyShift: shift });
  const day = dayOf(at);
  state.mastery = step.masteryAfter;
  state.attempts++;
  state.lastAttemptAt = at;
  if (isCorrect && day > state.lastCorrectDay) {
    state.correctDays++;
    state.lastCorrectDay = day;
  }
  return step.pCorrect;
}

/** Mean log loss of two models on the same answers; both 0 for no answers. */
export interface LossComparison {
  readonly answers: number;
  readonly candidate: number;
  readonly current: number;
}

/** Compares two models skill by skill on learners whom the candidate was not fitted on. */
export function heldOutLogLoss(
  log: AnswerLog,
  learners: Learners,
  candidate: TracedModel,
  current: TracedModel,
): LossComparison[] {
  const answers = new Uint32Array(log.skills);
  const [losses, before] = [candidate, current].map((model) => {
    const sums = new Float64Array(log.skills);
    answers.fill(0);
    traceLog(log, learners, model, (place, pCorrect) => {
      const skill = log.skill[place] as number;
      answers[skill] = (answers[skill] as number) + 1;
      sums[skill] = (sums[skill] as number) + answerLoss(pCorrect, log.correct[place] as number);
    });
    return sums;
  });
  return Array.from(answers, (count, skill) => ({
    answers: count,
    candidate: (losses?.[skill] ?? 0) / Math.max(1, count),
    current: (before?.[skill] ?? 0) / Math.max(1, count),
  }));
}
