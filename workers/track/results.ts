/** The result of an answer, and its row for ClickHouse. */
import { type AttemptFigures, encodeAttemptRow } from '../../src/contracts/attempt-row.js';
import type { TrackEvent } from '../../src/contracts/tasks.js';
import { type Advice, adviceText } from '../../src/domain/advice/answer-advice.js';
import type { AnswerEffect } from '../../src/domain/answer/apply-answer.js';
import type { Conditions } from '../../src/domain/answer/conditions.js';
import { modelVersion } from '../../src/domain/base/params.js';
import { round4 } from '../../src/domain/base/probability.js';
import { efficiencyIndex } from '../../src/domain/tracing/pace.js';
import { isPlateau } from '../../src/domain/tracing/plateau.js';
import type { LearnerState } from '../../src/domain/tracing/states.js';
import { fingerprintNumber, type ResultFigures } from '../../src/store/learners/event-ids.js';

/** As they are remembered for the answer's id. */
export function figuresOf({ skill, masteryBefore }: AnswerEffect, advice: Advice | null): ResultFigures {
  return {
    masteryBefore: round4(masteryBefore),
    masteryAfter: round4(skill.mastery),
    attempts: skill.attempts,
    correct: skill.correct,
    plateauDetected: isPlateau(skill.plateau),
    advice,
  };
}

/** JSON of the learning event result (`LearningEventResult`), written out: numbers need no escapes. */
export function resultOf(answer: ResultFigures, skillId: string): string {
  const { masteryBefore, masteryAfter, advice } = answer;
  const mastery = `{"mastery_before":${masteryBefore},"mastery_after":${masteryAfter}`;
  const trend = `"velocity":${round4(masteryAfter - masteryBefore)},"plateau_detected":${answer.plateauDetected}`;
  const counts = `"total_attempts":${answer.attempts},"correct_attempts":${answer.correct}`;
  return `${mastery},${trend},${counts},${recommendationOf(advice, skillId)}}`;
}

function recommendationOf(advice: Advice | null, skillId: string): string {
  if (advice === null) return '"recommendation":null';
  const text = JSON.stringify(adviceText(advice, skillId));
  return `"recommendation":${text},"recommendation_code":"${advice.code}"`;
}

/**
 * The row for the outbox.
 * @param learner after the answer, with its baseline; its version is still the one that was read
 * @param fingerprint of an event with an id
 */
export function rowOf(
  event: TrackEvent,
  effect: AnswerEffect,
  conditions: Conditions,
  advice: Advice | null,
  learner: LearnerState,
  fingerprint: Buffer | null,
): string {
  const figures = rowFigures(effect, advice, {
    learnerSeq: learner.attempts,
    baselineTotal: learner.baselineTotal,
    eventFingerprint: fingerprint === null ? 0 : fingerprintNumber(fingerprint),
    learnerVersion: learner.version + 1,
  });
  return encodeAttemptRow(event, figures, conditions);
}

/** What a row holds of the learner's record and of the event's id. */
type RowPlace = Pick<AttemptFigures, 'learnerSeq' | 'baselineTotal' | 'eventFingerprint' | 'learnerVersion'>;

/** Field by field: one object spread into another took 7 µs more an answer, here and where it is encoded. */
export const rowFigures = (
  { skill, masteryBefore, isRapid }: AnswerEffect,
  advice: Advice | null,
  { learnerSeq, baselineTotal, eventFingerprint, learnerVersion }: RowPlace,
): AttemptFigures => ({
  learnerSeq,
  masteryBefore,
  masteryAfter: skill.mastery,
  plateauDetected: isPlateau(skill.plateau),
  isRapid,
  efficiencyIndex: efficiencyIndex(skill.pace),
  recommendationCode: advice?.code ?? '',
  modelVersion,
  baselineTotal,
  eventFingerprint,
  learnerVersion,
});
