/** How well parameters foretell answers that they were not fitted on, by the very rule that serves. */

import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { dayMs } from '../../base/days.js';
import { logLossClip } from '../../base/metrics.js';
import { type BktParameters, type FitBounds, fitModel } from '../../base/params.js';
import { difficultyShift, traceAnswer } from '../../tracing/bkt.js';
import { effectiveMastery } from '../../tracing/forgetting.js';

/** Parameters of all skills, as far as tracing needs them. */
export interface TracedModel {
  readonly skills: readonly { readonly parameters: BktParameters; readonly difficultyMean: number }[];
  readonly difficultyScale: number;
  readonly bounds: FitBounds;
}

/** A fixed fifth of the learners, picked by a hash of their index (the finaliser of MurmurHash3). */
export function isHeldOut(learner: number): boolean {
  let hash = learner + 1;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32 < fitModel.heldOutShare;
}

interface Tracing {
  learner: number;
  mastery: number;
  attempts: number;
  lastAttemptAt: number;
  correctDays: number;
  lastCorrectDay: number;
}

/**
 * Traces every answer of these learners from their earlier answers and hands over the probability of a right
 * answer that was told before it.
 */
export function traceLog(
  log: AnswerLog,
  learners: LearnerFilter,
  model: TracedModel,
  visit: (place: number, pCorrect: number, learner: number) => void,
): void {
  const states = model.skills.map(() => newTracing(-1, 0));
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (!learners(learner)) continue;
    const end = log.starts[learner + 1] as number;
    for (let place = log.starts[learner] as number; place < end; place++) {
      const skill = log.skill[place] as number;
      const { parameters } = model.skills[skill] as TracedModel['skills'][number];
      const known = states[skill] as Tracing;
      const state = known.learner === learner ? known : newTracing(learner, parameters.pInit);
      states[skill] = state;
      visit(place, traceInto(state, log, place, parameters, shiftOf(log, place, model)), learner);
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

function shiftOf(log: AnswerLog, place: number, { skills, difficultyScale, bounds }: TracedModel): number {
  const difficulty = log.difficulty[place] as number;
  if (difficultyScale === 0 || Number.isNaN(difficulty)) return 0;
  const skill = skills[log.skill[place] as number] as TracedModel['skills'][number];
  return difficultyShift(skill.parameters, difficulty - skill.difficultyMean, difficultyScale, bounds);
}

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
  const day = Math.floor(at / dayMs);
  state.mastery = step.masteryAfter;
  state.attempts++;
  state.lastAttemptAt = at;
  if (isCorrect && day > state.lastCorrectDay) {
    state.correctDays++;
    state.lastCorrectDay = day;
  }
  return step.pCorrect;
}

/** -ln of the probability given to what happened. */
export const lossOf = (pCorrect: number, correct: number): number =>
  -Math.log(Math.max(correct === 1 ? pCorrect : 1 - pCorrect, logLossClip));

/** Mean log loss of two models on one skill's answers; 0 answers: nothing to tell them apart, both 0. */
export interface LossComparison {
  readonly answers: number;
  readonly candidate: number;
  readonly current: number;
}

/** Compares two models skill by skill on learners whom the candidate was not fitted on. */
export function heldOutLogLoss(
  log: AnswerLog,
  learners: LearnerFilter,
  candidate: TracedModel,
  current: TracedModel,
): LossComparison[] {
  const answers = new Uint32Array(log.skills);
  const losses = [candidate, current].map((model) => {
    const sums = new Float64Array(log.skills);
    answers.fill(0);
    traceLog(log, learners, model, (place, pCorrect) => {
      const skill = log.skill[place] as number;
      answers[skill] = (answers[skill] as number) + 1;
      sums[skill] = (sums[skill] as number) + lossOf(pCorrect, log.correct[place] as number);
    });
    return sums;
  });
  return Array.from(answers, (count, skill) => ({
    answers: count,
    candidate: (losses[0]?.[skill] ?? 0) / Math.max(1, count),
    current: (losses[1]?.[skill] ?? 0) / Math.max(1, count),
  }));
}

/** Whether the candidate may be published: held-out log loss gets worse by no more than the slack. */
export const mayPublish = ({ candidate, current }: LossComparison): boolean =>
  candidate - current <= fitModel.heldOutSlack;
