/** Taking back one answer that was wrongly reported. */

import type { Limiter } from '../../concurrency.js';
import type { TakeBackReply, TakeBackTask } from '../../contracts/take-back-tasks.js';
import { ApiError, unavailable } from '../../errors.js';
import type { WaitingAttempts } from '../../store/outbox/waiting-attempts.js';
import type { StoredHistories } from '../../warehouse/reads/stored-attempts.js';
import { describeSkill, findLearner, type MasteryPorts, readTracedSkill } from '../read/read-mastery.js';

/** Replays a learner without one answer, and commits what comes out. */
export interface HistoryRewriter {
  /** @throws ApiError UNAVAILABLE */
  rewrite(task: TakeBackTask): Promise<Exclude<TakeBackReply, { readonly unavailable: string }>>;
}

export interface TakeBackPorts extends MasteryPorts {
  readonly waiting: WaitingAttempts;
  readonly histories: StoredHistories;
  readonly rewriter: HistoryRewriter;
  /** Each holds a whole history, perhaps several times: who waits must not have read it yet. */
  readonly limit: Limiter;
}

/** Answers that arrive in between begin it anew. */
const tries = 20;

/** A history is replayed as a whole, and what follows the answer is written in one step: about half a second of Redis. */
const mostAnswers = 50_000;

/**
 * Data of DELETE /api/v1/learners/{user_id}/attempts/{event_id}. The learner is as if the answer had never come when it
 * resolves; the rows in ClickHouse follow. The event id stays taken, so that a late repeat does not bring the answer back.
 *
 * @throws ApiError USER_NOT_FOUND; NOT_FOUND where no answer has the id (any more); TOO_LATE; UNAVAILABLE where not all of
 * the learner's answers can be read, too many arrive meanwhile, or too much is taken back already
 */
export async function takeBackAnswer(
  ports: TakeBackPorts,
  tenant: string,
  userId: string,
  eventId: string,
): Promise<object> {
  const skillId = await ports.limit(tenant, () => rewriteWithout(ports, tenant, userId, eventId));
  return describe(ports, tenant, userId, eventId, skillId);
}

/** @returns the skill of the answer that is gone */
async function rewriteWithout(
  ports: TakeBackPorts,
  tenant: string,
  userId: string,
  eventId: string,
): Promise<string> {
  for (let attempt = 0; attempt < tries; attempt++) {
    const reply = await ports.rewriter.rewrite(await readTask(ports, tenant, userId, eventId));
    if (reply.status === 'done') return reply.skillId;
    if (reply.status !== 'conflict' && reply.status !== 'incomplete') throw refusalOf(reply.status);
  }
  throw unavailable('Not all answers of this learner can be read right now, or more arrive; try again later');
}

/** The learner's record first, then Redis, then ClickHouse: whatever moves in between is found. */
async function readTask(
  ports: TakeBackPorts,
  tenant: string,
  userId: string,
  eventId: string,
): Promise<TakeBackTask> {
  const { version, attempts, baselineTotal } = await findLearner(ports, tenant, userId);
  if (attempts > mostAnswers)
    throw tooLate(`Answers of learners with more than ${mostAnswers} are not taken back`);
  const waiting: string[] = [];
  for await (const page of ports.waiting.of(tenant, userId))
    waiting.push(...page.flatMap(({ line, row }) => (row === null ? [] : [line])));
  const history = await ports.histories.read(tenant, userId, attempts).catch((error: unknown) => {
    throw unavailable('The answers that are stored cannot be read right now; try again later', error);
  });
  return { tenant, userId, eventId, version, attempts, baselineTotal, waiting, ...history };
}

function refusalOf(status: 'absent' | 'archived' | 'full' | 'emptied'): ApiError {
  if (status === 'absent')
    return new ApiError('NOT_FOUND', 'No answer of this user_id that is stored has this event_id');
  if (status === 'archived')
    return tooLate('The answer, or one that is written with it, is kept as part of a sum alone');
  if (status === 'full') return unavailable('Too many answers wait to be stored; try again later');
  return unavailable('The state store came back empty and has to be rebuilt first');
}

const tooLate = (message: string): ApiError => new ApiError('TOO_LATE', message);

/** `skill` is null where no answer on it is left. */
async function describe(
  ports: TakeBackPorts,
  tenant: string,
  userId: string,
  eventId: string,
  skillId: string,
): Promise<object> {
  const traced = await readTracedSkill(ports, tenant, userId, skillId).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  return {
    user_id: userId,
    event_id: eventId,
    skill_id: skillId,
    total_attempts: traced?.skill.attempts ?? 0,
    skill: traced === null ? null : describeSkill(traced),
  };
}
