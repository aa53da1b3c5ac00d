import type { Call } from '../../contracts/access/call.js';
import type { AttemptRow, SkillFigures } from '../../contracts/answers/attempt-row.js';
import { computeAverageLogOdds } from '../../domain/answer/answer-conditions.js';
import { round4 } from '../../domain/base/common.js';
import { computeExpectedRange } from '../../domain/learner/expected-accuracy.js';
import { type LearnerState, newLearner } from '../../domain/tracing/learner-states.js';
import { rejectAsUnavailable, unavailable } from '../../errors.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { NumberedRow, StoredRows } from '../../warehouse/reads/stored-rows.js';
import type { SourceLagPorts } from '../outbox/wait-until-stored.js';
import {
  buildPage,
  createNumberCursors,
  defaultPageLimit,
  encodeList,
  type PageQuery,
} from '../paging/pages.js';
import type { ErasureLookup } from './list-learners.js';
import {
  describeRange,
  findSkillState,
  type MasteryPorts,
  readLearner,
  readLearnerState,
} from './read-mastery.js';

export interface AttemptPorts extends MasteryPorts, SourceLagPorts {
  readonly pendingAttempts: PendingAttempts;
  readonly stored: Pick<StoredRows, 'readAttempts' | 'readSkillAttempts'>;
  readonly erasures: Pick<ErasureLookup, 'findErased'>;
}

/** Retries after a concurrent correction. */
const maxTries = 5;

/**
 * Each counted answer is listed or counted as missing. Requires ClickHouse, because a partial list would look
 * complete.
 */
export async function listAttempts(
  ports: AttemptPorts,
  { tenant, query: { limit = defaultPageLimit, cursor } }: Call<PageQuery>,
  userId: string,
): Promise<string> {
  const before = cursors.decode(cursor) ?? Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < maxTries; tries++) {
    const learner = await readLearnerState(ports, tenant, userId);
    const to = Math.min(learner.attempts, before - 1);
    const found = await readNewest(ports, tenant, userId, to, limit);
    if (!continuesHistory(learner, await readLearnerState(ports, tenant, userId))) continue;
    const last = found.at(-1);
    const isFull = found.length === limit && last !== undefined && getSeq(last) > 1;
    const first = isFull ? getSeq(last) : 1;
    const missing = Math.max(0, to - first + 1) - found.length;
    const page = { items: found, next_cursor: isFull ? cursors.encode(first) : null };
    const fields = { user_id: userId, total_attempts: learner.attempts, missing };
    return encodeList(fields, 'attempts', page, (row) => describeAttempt(row));
  }
  throw unavailable('Answers of this learner are being corrected; retry later.');
}

export async function listSkillAnswers(
  ports: AttemptPorts,
  { tenant, query: { limit = defaultPageLimit, cursor } }: Call<PageQuery>,
  userId: string,
  skillId: string,
): Promise<string> {
  const before = cursors.decode(cursor) ?? Number.POSITIVE_INFINITY;
  const lag = await ports.sourceLagSeconds();
  const { learner, skills } = await readLearner(ports, tenant, userId);
  const { attempts } = findSkillState(skills, skillId);
  const [erased] = await ports.erasures.findErased(tenant, [userId]);
  const to = Math.min(learner.attempts, before - 1);
  const range = { tenant, userId, skillId, to, below: erased?.below ?? { ms: 0, seq: 0 } };
  const { rows, stored } = await rejectAsUnavailable(
    ports.stored.readSkillAttempts({ ...range, atMost: limit + 1 }),
  );
  const page = buildPage(rows, limit, (last) => cursors.encode(getSeq(last)));
  const pending = Math.max(0, attempts - stored);
  const fields = {
    ...{ user_id: userId, skill_id: skillId, total_attempts: attempts, pending_attempts: pending },
    source_lag_seconds: pending === 0 ? 0 : lag,
  };
  return encodeList(fields, 'answers', page, (row) => describeSkillAnswer(row, skillId));
}

function describeSkillAnswer({ number, ...row }: NumberedRow, skillId: string): object {
  const range = describeRange(computeExpectedRange(computeAverageLogOdds(row.conditions), (number ?? 1) - 1));
  const unknown = number === null ? { expected_low: null, expected_high: null } : {};
  return { ...describeAttempt(row, skillId), ...range, ...unknown };
}

/** True unless a correction or erasure came in between: only commits add at least one answer per version. */
export const continuesHistory = (before: LearnerState, now: LearnerState): boolean =>
  before.version === newLearner.version ||
  (now.version >= before.version && now.attempts - before.attempts >= now.version - before.version);

const getSeq = ({ figures }: AttemptRow): number => figures.learnerSeq;

/** Redis first, then ClickHouse, to find answers that move in between. */
async function readNewest(
  { pendingAttempts, stored }: AttemptPorts,
  tenant: string,
  userId: string,
  to: number,
  atMost: number,
): Promise<AttemptRow[]> {
  let newest: AttemptRow[] = [];
  // For duplicate numbers, the first row counts.
  const add = (rows: readonly AttemptRow[]): void => {
    const bySeq = new Map([...newest, ...rows].toReversed().map((row) => [getSeq(row), row]));
    newest = [...bySeq.values()].sort((a, b) => getSeq(b) - getSeq(a)).slice(0, atMost);
  };
  for await (const page of pendingAttempts.readPages(tenant, userId))
    add(page.flatMap(({ row }) => (row !== null && getSeq(row) <= to ? [row] : [])));
  const range = { tenant, userId, from: 1, to, order: 'newest first', atMost } as const;
  add(await rejectAsUnavailable(stored.readAttempts(range)));
  return newest;
}

/** @param skillId with its figures; default: the first skill of the question */
function describeAttempt({ event, figures, conditions }: AttemptRow, skillId = event.skillIds[0]): object {
  const index = event.skillIds.indexOf(skillId);
  const skill = figures.skills[index] as SkillFigures;
  return {
    learner_seq: figures.learnerSeq,
    event_id: event.eventId,
    skill_id: skillId,
    skill_ids: event.skillIds,
    item_id: event.itemId,
    is_correct: event.isCorrect,
    time_spent_seconds: event.timeSpentSeconds,
    confidence_score: event.confidenceScore,
    question_difficulty: event.questionDifficulty,
    occurred_at: new Date(event.occurredAt).toISOString(),
    received_at: new Date(event.receivedAt).toISOString(),
    mastery_before: round4(skill.masteryBefore),
    mastery_after: round4(skill.masteryAfter),
    p_correct: round4(conditions.pCorrect),
    plateau_detected: skill.plateauDetected,
    recommendation_code: figures.recommendationCode || null,
    parameters_version: conditions.skills[index]?.version,
    model_version: figures.modelVersion,
  };
}

const cursors = createNumberCursors('before:');
