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
import { mapNonEmpty, type NonEmpty, round4 } from '../../src/domain/base/common.js';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import { isPlateau } from '../../src/domain/tracing/plateau.js';
import { computeEfficiencyIndex } from '../../src/domain/tracing/response-times.js';
import type { ApiError } from '../../src/errors.js';
import type { ResultFigures, SkillResult } from '../../src/store/learners/event-ids.js';

export const toResultFigures = (
  skillIds: NonEmpty<string>,
  { skills, masteriesBefore }: AnswerEffect,
  advice: Advice | null,
): ResultFigures => ({
  skillIds,
  skills: mapNonEmpty(skills, (skill, i) => ({
    masteryBefore: round4(masteriesBefore[i] as number),
    masteryAfter: round4(skill.mastery),
    attempts: skill.attempts,
    correct: skill.correct,
    plateauDetected: isPlateau(skill.plateau),
  })),
  advice,
});

/** JSON of `LearningEventResult`. Numbers need no escapes. @param listsSkills the event has `skill_ids` */
export function formatResult({ skillIds, skills, advice }: ResultFigures, listsSkills: boolean): string {
  const recommendation = formatRecommendation(advice, skillIds);
  const list = listsSkills ? `,"skills":[${skills.map((skill, i) => formatListed(skillIds[i], skill))}]` : '';
  return `{${formatSkill(skills[0])},${recommendation}${list}}`;
}

const formatListed = (skillId: string | undefined, skill: SkillResult): string =>
  `{"skill_id":${JSON.stringify(skillId)},${formatSkill(skill)}}`;

function formatSkill(skill: SkillResult): string {
  const { masteryBefore, masteryAfter } = skill;
  const mastery = `"mastery_before":${masteryBefore},"mastery_after":${masteryAfter}`;
  const trend = `"velocity":${round4(masteryAfter - masteryBefore)},"plateau_detected":${skill.plateauDetected}`;
  return `${mastery},${trend},"total_attempts":${skill.attempts},"correct_attempts":${skill.correct}`;
}

function formatRecommendation(advice: Advice | null, skillIds: NonEmpty<string>): string {
  if (advice === null) return '"recommendation":null';
  const text = JSON.stringify(formatAdvice(advice, skillIds[advice.skill] as string));
  return `"recommendation":${text},"recommendation_code":"${advice.code}"`;
}

/** Field by field: a spread took 7 µs more. */
export const toAttemptFigures = (
  { skills, masteriesBefore, isRapid }: AnswerEffect,
  { norm }: AnswerConditions,
  advice: Advice | null,
  learnerFigures: Pick<
    AttemptFigures,
    'learnerSeq' | 'baselineTotal' | 'eventFingerprint' | 'learnerVersion'
  >,
): AttemptFigures => ({
  learnerSeq: learnerFigures.learnerSeq,
  skills: mapNonEmpty(skills, ({ mastery, plateau }, i) => ({
    masteryBefore: masteriesBefore[i] as number,
    masteryAfter: mastery,
    plateauDetected: isPlateau(plateau),
  })),
  isRapid,
  efficiencyIndex: computeEfficiencyIndex(skills[0].pace, skills[0].rapid, norm),
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
