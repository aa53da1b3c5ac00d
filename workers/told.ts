/** What is told of one answer, to its caller and to ClickHouse. */
import { encodeAttemptRow } from '../src/contracts/attempt-row.js';
import type { LearningEventResult } from '../src/contracts/events.js';
import type { TrackEvent } from '../src/contracts/tasks.js';
import type { Conditions } from '../src/domain/conditions.js';
import { efficiencyIndex } from '../src/domain/efficiency.js';
import type { AnswerEffect } from '../src/domain/mastery.js';
import { modelVersion } from '../src/domain/params.js';
import { isPlateau } from '../src/domain/plateau.js';
import { round4 } from '../src/domain/probability.js';
import { type Advice, adviceText } from '../src/domain/recommend.js';
import type { ToldFigures } from '../src/store/event-ids.js';

/** As they are remembered for the answer's id. */
export function figuresOf({ skill, masteryBefore }: AnswerEffect, advice: Advice | null): ToldFigures {
  return {
    masteryBefore: round4(masteryBefore),
    masteryAfter: round4(skill.mastery),
    attempts: skill.attempts,
    correct: skill.correct,
    plateauDetected: isPlateau(skill.plateau),
    advice,
  };
}

/** JSON of the learning event result. */
export function resultOf(answer: ToldFigures, skillId: string): string {
  const result: LearningEventResult = {
    mastery_before: answer.masteryBefore,
    mastery_after: answer.masteryAfter,
    velocity: round4(answer.masteryAfter - answer.masteryBefore),
    plateau_detected: answer.plateauDetected,
    total_attempts: answer.attempts,
    correct_attempts: answer.correct,
    recommendation: answer.advice && adviceText(answer.advice, skillId),
    ...(answer.advice && { recommendation_code: answer.advice.code }),
  };
  return JSON.stringify(result);
}

/** The row for the outbox. @param baselineTotal of the learner after the answer */
export function rowOf(
  event: TrackEvent,
  effect: AnswerEffect,
  conditions: Conditions,
  advice: Advice | null,
  baselineTotal: number | null,
): string {
  const { learner, skill } = effect;
  const figures = {
    learnerSeq: learner.attempts,
    masteryBefore: effect.masteryBefore,
    masteryAfter: skill.mastery,
    plateauDetected: isPlateau(skill.plateau),
    isRapid: effect.isRapid,
    efficiencyIndex: efficiencyIndex(skill.pace),
    recommendationCode: advice?.code ?? '',
    modelVersion,
    baselineTotal,
  };
  return encodeAttemptRow(event, figures, conditions);
}
