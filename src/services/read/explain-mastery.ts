/** Why a learner's mastery of a skill is what it is, and what the next answer would make of it. */
import Type, { type Static } from 'typebox';
import { round4 } from '../../domain/base/common.js';
import {
  explainPrediction,
  nextMastery,
  type PredictionSubject,
  partsOf,
} from '../../domain/learner/explain.js';
import type { Logger } from '../../telemetry.js';
import type { AttemptHistory, AttemptQuery, StoredAttempt } from '../../warehouse/reads/skill-history.js';
import {
  describeSkill,
  type HistoryPorts,
  masteryNow,
  readHistory,
  readTracedSkill,
  type TracedSkill,
} from './read-mastery.js';
import { describeParameters } from './read-skills.js';

export const ExplainQuery = Type.Object({
  explain: Type.Enum(['true', 'false'], { default: 'false' }),
  steps: Type.Integer({ minimum: 1, maximum: 50, default: 10 }),
});
export type ExplainQuery = Static<typeof ExplainQuery>;

export type ExplainPorts = HistoryPorts<AttemptHistory>;

/**
 * GET /api/v1/mastery/{user_id}/{skill_id}?explain=true. Only the steps, the last answers, come from ClickHouse.
 * @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE
 */
export async function explainMastery(
  ports: ExplainPorts,
  tenant: string,
  userId: string,
  skillId: string,
  steps: number,
): Promise<object> {
  const traced = await readTracedSkill(ports, tenant, userId, skillId);
  const { skill, model, learner } = traced;
  const mastery = masteryNow(traced);
  const query = { tenant, userId, skillId, upTo: learner.attempts, atMost: steps + 1 };
  return {
    user_id: userId,
    ...describeSkill(traced),
    explanation: {
      parameters: describeParameters(model),
      ...(await describeSteps(ports, query, skill.attempts)),
      forgetting_since_last_attempt: change(skill.mastery, mastery),
      next: describeNext(traced, mastery),
      ...describePrediction(traced),
    },
  };
}

const notes = {
  unavailable: 'The last answers cannot be read right now; everything else is up to date',
  notAll: 'The newest answers are on their way and not among the steps yet',
  archived: 'Older answers are kept as daily sums only',
};

/** The steps, or a note in their place. @param attempts the learner's on the skill, by Redis */
async function describeSteps(ports: ExplainPorts, query: AttemptQuery, attempts: number): Promise<object> {
  const { lag, found } = await readHistory(ports, (history) => history.ofSkill(query));
  if (found === null)
    return { steps: null, pending_attempts: null, source_lag_seconds: null, note: notes.unavailable };
  const pending = attempts - found.stored - found.archived;
  const isCut = found.archived > 0 && found.attempts.length < query.atMost;
  return {
    steps: explainSteps(found.attempts, query, ports.logger),
    pending_attempts: pending,
    source_lag_seconds: pending === 0 ? 0 : lag,
    note: pending !== 0 ? notes.notAll : isCut ? notes.archived : null,
  };
}

/** The answers of the query as steps; the first of a full query only says where the steps begin. */
function explainSteps(
  read: readonly StoredAttempt[],
  { tenant, atMost }: AttemptQuery,
  logger: Logger,
): object[] {
  const first = read.length < atMost ? 0 : 1;
  return read.slice(first).map((attempt, i) => {
    const previous = previousMastery(attempt, read[first + i - 1]);
    const parts = partsOf(attempt, previous);
    if (parts.posterior === null || (parts.previous === null && previous !== null)) {
      const { learnerSeq, parametersVersion } = attempt;
      logger.error(
        { tenant, learnerSeq, parametersVersion },
        'a stored answer does not follow from its own figures',
      );
    }
    return {
      occurred_at: new Date(attempt.occurredAt).toISOString(),
      learner_seq: attempt.learnerSeq,
      is_correct: attempt.isCorrect,
      question_difficulty: attempt.questionDifficulty,
      mastery_before_forgetting: parts.previous,
      forgetting: parts.forgetting,
      mastery_before: parts.before,
      evidence: parts.evidence,
      learning: parts.learning,
      mastery_after: parts.after,
      p_correct: round4(attempt.pCorrect),
      parameters_version: attempt.parametersVersion,
    };
  });
}

/** Null where an answer in between is not stored, which may have been one on this skill. */
function previousMastery(attempt: StoredAttempt, before: StoredAttempt | undefined): number | null {
  if (attempt.missingBefore !== (before?.missingBefore ?? 0)) return null;
  return before === undefined ? attempt.parameters.pInit : before.masteryAfter;
}

function describeNext({ model }: TracedSkill, mastery: number): object {
  const { ifCorrect, ifWrong } = nextMastery(model.parameters, mastery);
  return {
    if_correct: { mastery: round4(ifCorrect), change: change(mastery, ifCorrect) },
    if_wrong: { mastery: round4(ifWrong), change: change(mastery, ifWrong) },
  };
}

/** The difference of what is shown. */
const change = (from: number, to: number): number => round4(round4(to) - round4(from));

/** `log_odds` is the sum of the terms as they are shown; `p_correct` comes from the terms unrounded. */
function describePrediction(subject: PredictionSubject): object {
  const { pCorrect, terms } = explainPrediction(subject);
  const shown = terms.map(({ name, logits }) => ({ name: snakeCase(name), logits: round4(logits) }));
  const logOdds = shown.reduce((sum, { logits }) => sum + logits, 0);
  return { p_correct: round4(pCorrect), log_odds: round4(logOdds), terms: shown };
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
