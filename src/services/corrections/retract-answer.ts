import type { Limiter } from '../../concurrency.js';
import type { Call } from '../../contracts/access/call.js';
import type { RetractionResult, RetractionTask } from '../../contracts/corrections/retraction-task.js';
import { ApiError, unavailable } from '../../errors.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { StoredRows } from '../../warehouse/reads/stored-rows.js';
import {
  describeSkill,
  type MasteryPorts,
  readLearnerState,
  readSkillView,
} from '../learners/read-mastery.js';

export interface RetractionPorts extends MasteryPorts {
  readonly pendingAttempts: Pick<PendingAttempts, 'readPages'>;
  readonly stored: Pick<StoredRows, 'readHistory'>;
  readonly rewriter: { retract(task: RetractionTask): Promise<RetractionResult> };
  /** A run needs memory for a whole history. */
  readonly limit: Limiter;
}

const maxTries = 20;

/** Rewriting this many answers blocks Redis for about half a second. */
const maxAnswers = 50_000;

/**
 * The state becomes as if the answer had never arrived. Its event id stays used, so a late repeat has no
 * effect.
 */
export async function retractAnswer(
  ports: RetractionPorts,
  { tenant }: Pick<Call, 'tenant'>,
  userId: string,
  eventId: string,
): Promise<object> {
  const skillIds = await ports.limit(tenant, () => retractWithRetries(ports, tenant, userId, eventId));
  const skills = await Promise.all(
    skillIds.map((skillId) => describeRemainingSkill(ports, tenant, userId, skillId)),
  );
  return { user_id: userId, event_id: eventId, ...skills[0], ...(skills.length > 1 && { skills }) };
}

/** `skill` is null if no answers remain. */
async function describeRemainingSkill(
  ports: RetractionPorts,
  tenant: string,
  userId: string,
  skillId: string,
) {
  const remaining = await readSkillView(ports, tenant, userId, skillId).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  return {
    skill_id: skillId,
    total_attempts: remaining?.view.state.attempts ?? 0,
    skill: remaining && describeSkill(remaining),
  };
}

async function retractWithRetries(ports: RetractionPorts, tenant: string, userId: string, eventId: string) {
  for (let tries = 0; tries < maxTries; tries++) {
    const result = await ports.rewriter.retract(await readRetractionTask(ports, tenant, userId, eventId));
    if (result.status === 'done') return result.skillIds;
    if (result.status !== 'conflict' && result.status !== 'incomplete')
      throw rejectionErrors[result.status]();
  }
  throw unavailable(
    'The answers of this learner cannot be read completely, or more answers are arriving; retry later.',
  );
}

/** Reads the record, then Redis, then ClickHouse, to find rows that move in between. */
async function readRetractionTask(
  ports: RetractionPorts,
  tenant: string,
  userId: string,
  eventId: string,
): Promise<RetractionTask> {
  const { version, attempts } = await readLearnerState(ports, tenant, userId);
  if (attempts > maxAnswers)
    throw new ApiError('TOO_LATE', `Retraction is limited to learners with at most ${maxAnswers} answers.`);
  const outboxRows: string[] = [];
  for await (const page of ports.pendingAttempts.readPages(tenant, userId))
    outboxRows.push(...page.flatMap(({ line, row }) => (row === null ? [] : [line])));
  const history = await ports.stored.readHistory(tenant, userId, attempts).catch((error: unknown) => {
    throw unavailable('Stored answers cannot be read now; retry later.', error);
  });
  return { tenant, userId, eventId, version, attempts, outboxRows, ...history };
}

const rejectionErrors = {
  absent: () => new ApiError('NOT_FOUND', 'No stored answer of this user_id has this event_id.'),
  archived: () =>
    new ApiError(
      'TOO_LATE',
      'The answer, or an answer recorded together with it, is archived and cannot be retracted.',
    ),
  full: () => unavailable('Too many answers are waiting for ClickHouse; retry later.'),
  lost: () => unavailable('Learner state was lost and is not rebuilt yet; retry later.'),
};
