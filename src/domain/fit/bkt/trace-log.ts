import {
  type AnswerLog,
  hasDifficulty,
  iterateLearnerRanges,
  type LearnerSelection,
  listSkillSets,
  readSkillSet,
} from '../../base/answer-log.js';
import type { BktParameters } from '../../base/bkt-parameters.js';
import { average, mapNonEmpty, type NonEmpty, toUtcDay } from '../../base/common.js';
import { computeAnswerLoss } from '../../base/prediction-metrics.js';
import { computeEffectiveMastery, computeQuestionShift, traceQuestion } from '../../tracing/bkt.js';

interface TracedSkill {
  readonly parameters: BktParameters;
  readonly difficultyMean: number;
}

export interface TracedModel {
  readonly skills: readonly TracedSkill[];
  readonly difficultyScale: number;
}

const selectSkills = (log: AnswerLog, index: number, { skills }: TracedModel): NonEmpty<TracedSkill> =>
  Array.from(readSkillSet(log, log.skill[index] as number), (skill) => skills[skill]) as [
    TracedSkill,
    ...TracedSkill[],
  ];

export const averageDifficulty = (skills: readonly Pick<TracedSkill, 'difficultyMean'>[]): number =>
  average(skills, ({ difficultyMean }) => difficultyMean);

/** Difficulty centred per skill; null if not supplied. */
export function computeDifficulty(log: AnswerLog, index: number, model: TracedModel): number | null {
  const difficulty = log.difficulty[index] as number;
  return Number.isNaN(difficulty) ? null : difficulty - averageDifficulty(selectSkills(log, index, model));
}

export function computeShift(log: AnswerLog, index: number, model: TracedModel): number {
  const difficulty = computeDifficulty(log, index, model);
  if (model.difficultyScale === 0 || difficulty === null) return 0;
  return computeQuestionShift(selectSkills(log, index, model), difficulty, model.difficultyScale);
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
  const day = toUtcDay(at);
  history.attempts++;
  history.lastAttemptAt = at;
  if (!isCorrect || day <= history.lastCorrectDay) return;
  history.correctDays++;
  history.lastCorrectDay = day;
}

type TracedAttempt = ReturnType<typeof traceQuestion>[0];

/** @param visit `pCorrect` of the answer, and of each of its skills */
export function traceLog(
  log: AnswerLog,
  learners: LearnerSelection,
  model: TracedModel,
  visit: (index: number, pCorrect: number, learner: number, skills: NonEmpty<TracedAttempt>) => void,
  from = 0,
  to = learners.length,
): void {
  const states = model.skills.map(() => createAttemptHistory(-1));
  const sets = listSkillSets(log);
  const readState = (skill: number, learner: number): AttemptHistory => {
    const state = states[skill] as AttemptHistory;
    if (state.learner === learner) return state;
    const { pInit } = (model.skills[skill] as TracedSkill).parameters;
    const fresh = createAttemptHistory(learner, pInit);
    states[skill] = fresh;
    return fresh;
  };
  for (const { learner, start, end } of iterateLearnerRanges(log, learners, from, to)) {
    for (let index = start; index < end; index++) {
      const set = sets[log.skill[index] as number] as NonEmpty<number>;
      const isCorrect = log.correct[index] === 1;
      const at = log.at[index] as number;
      const before = mapNonEmpty(set, (skill) => {
        const { parameters } = model.skills[skill] as TracedSkill;
        const state = readState(skill, learner);
        const now = Math.max(state.lastAttemptAt, at);
        return { parameters, mastery: computeEffectiveMastery(parameters.pInit, state, now) };
      });
      const traced = traceQuestion(before, isCorrect, computeShift(log, index, model));
      for (const [i, skill] of set.entries()) {
        const state = readState(skill, learner);
        state.mastery = (traced[i] as TracedAttempt).masteryAfter;
        recordAttempt(state, Math.max(state.lastAttemptAt, at), isCorrect);
      }
      visit(
        index,
        traced.reduce((product, { pCorrect }) => product * pCorrect, 1),
        learner,
        traced,
      );
    }
  }
}

export function sumLosses(
  log: AnswerLog,
  learners: LearnerSelection,
  model: TracedModel,
  groups: number,
  groupsOf: (index: number, learner: number) => readonly number[],
) {
  const losses = new Float64Array(groups);
  const answers = new Uint32Array(groups);
  traceLog(log, learners, model, (index, pCorrect, learner) => {
    const loss = computeAnswerLoss(pCorrect, log.correct[index] as number);
    for (const group of groupsOf(index, learner)) {
      losses[group] = (losses[group] as number) + loss;
      answers[group] = (answers[group] as number) + 1;
    }
  });
  return { losses, answers };
}

/** Losses on the same held-out answers; null without answers. */
export interface LossComparison {
  readonly answers: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
}

/** @returns per skill, with all answers that include it, and of all answers */
export function compareHeldOutLoss(
  log: AnswerLog,
  learners: LearnerSelection,
  candidate: TracedModel,
  current: TracedModel,
): { readonly skills: readonly LossComparison[]; readonly all: LossComparison } {
  const groups = listSkillSets(log).map((set) => [...set, log.skills]);
  const bySkill = (model: TracedModel) =>
    sumLosses(
      log,
      learners,
      model,
      log.skills + 1,
      (index) => groups[log.skill[index] as number] as readonly number[],
    );
  const [after, before] = [bySkill(candidate), bySkill(current)];
  const mean = (losses: Float64Array, skill: number, answers: number) =>
    answers === 0 ? null : (losses[skill] as number) / answers;
  const compared = Array.from(after.answers, (answers, skill) => ({
    answers,
    oldLogLoss: mean(before.losses, skill, answers),
    newLogLoss: mean(after.losses, skill, answers),
  }));
  return { skills: compared.slice(0, -1), all: compared.at(-1) as LossComparison };
}
