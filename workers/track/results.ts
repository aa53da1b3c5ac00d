/** Builds results, attempt figures and the reply to a task. */
import type { AttemptFigures } from '../../src/contracts/answers/attempt-row.js';
import {
  dataSeparator,
  outcomeLetters,
  type TrackOutcome,
  type TrackReply,
} from '../../src/contracts/answers/track-task.js';
import { type Advice, formatAdvice } from '../../src/domain/advice/answer-advice.js';
import type { AnswerConditions } from '../../src/domain/answer/answer-conditions.js';
import type { AnswerEffect } from '../../src/domain/answer/apply-answer.js';
import { round4 } from '../../src/domain/base/common.js';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import { isPlateau } from '../../src/domain/tracing/plateau.js';
import { computeEfficiencyIndex } from '../../src/domain/tracing/response-times.js';
import type { ApiError } from '../../src/errors.js';
import type { ResultFigures } from '../../src/store/learners/event-ids.js';

export function toResultFigures(
  { skill, masteryBefore }: AnswerEffect,
  advice: Advice | null,
): ResultFigures {
  return {
    masteryBefore: round4(masteryBefore),
    masteryAfter: round4(skill.mastery),
    attempts: skill.attempts,
    correct: skill.correct,
    plateauDetected: isPlateau(skill.plateau),
    advice,
  };
}

/** JSON of `LearningEventResult`. Numbers need no escapes. */
export function formatResult(figures: ResultFigures, skillId: string): string {
  const { masteryBefore, masteryAfter, advice } = figures;
  const mastery = `{"mastery_before":${masteryBefore},"mastery_after":${masteryAfter}`;
  const trend = `"velocity":${round4(masteryAfter - masteryBefore)},"plateau_detected":${figures.plateauDetected}`;
  const counts = `"total_attempts":${figures.attempts},"correct_attempts":${figures.correct}`;
  return `${mastery},${trend},${counts},${formatRecommendation(advice, skillId)}}`;
}

function formatRecommendation(advice: Advice | null, skillId: string): string {
  if (advice === null) return '"recommendation":null';
  const text = JSON.stringify(formatAdvice(advice, skillId));
  return `"recommendation":${text},"recommendation_code":"${advice.code}"`;
}

/** Field by field: a spread took 7 µs more. */
export const toAttemptFigures = (
  { skill, masteryBefore, isRapid }: AnswerEffect,
  { norm }: AnswerConditions,
  advice: Advice | null,
  learnerFigures: Pick<
    AttemptFigures,
    'learnerSeq' | 'baselineTotal' | 'eventFingerprint' | 'learnerVersion'
  >,
): AttemptFigures => ({
  learnerSeq: learnerFigures.learnerSeq,
  masteryBefore,
  masteryAfter: skill.mastery,
  plateauDetected: isPlateau(skill.plateau),
  isRapid,
  efficiencyIndex: computeEfficiencyIndex(skill.pace, skill.rapid, norm),
  recommendationCode: advice?.code ?? '',
  modelVersion: formulaVersion,
  baselineTotal: learnerFigures.baselineTotal,
  eventFingerprint: learnerFigures.eventFingerprint,
  learnerVersion: learnerFigures.learnerVersion,
});

export type ReplyBuilder = ReturnType<typeof createReplyBuilder>;

export function createReplyBuilder() {
  const letters: string[] = [];
  const texts: string[] = [];
  const set = (index: number, outcome: TrackOutcome, data: string): void => {
    letters[index] = outcomeLetters[outcome];
    texts[index] = data;
  };
  return {
    /** @returns index of an outcome, which is `failed` until it is set */
    reserve: (): number => letters.push(outcomeLetters.failed) - 1,
    set,
    setInvalid: (index: number, { message, details = [] }: ApiError): void =>
      set(index, 'invalid', JSON.stringify({ message, details })),
    build: (counts: readonly number[]): TrackReply => ({
      counts,
      outcomes: letters.join(''),
      data: texts.join(dataSeparator),
    }),
  };
}
