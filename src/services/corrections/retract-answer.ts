import type { Limiter } from '../../concurrency.js';
import type { Call } from '../../contracts/access/call.js';
import type {
  LearnerHistory,
  RetractionResult,
  RetractionTask,
} from '../../contracts/corrections/rewrite-tasks.js';
import { buildSkillView } from '../../domain/learner/skill-view.js';
import { ApiError, unavailable } from '../../errors.js';
import { maxRewrittenAnswers } from '../../store/corrections/rewrites.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { StoredRows } from '../../warehouse/reads/stored-rows.js';
import { describeSkill, type MasteryPorts, readLearner, readLearnerState } from '../learners/read-mastery.js';

export interface LearnerHistoryPorts extends Pick<MasteryPorts, 'learners'> {
  readonly pendingAttempts: Pick<PendingAttempts, 'readPages'>;
  readonly stored: Pick<StoredRows, 'readHistory'>;
}

export interface RetractionPorts extends LearnerHistoryPorts, MasteryPorts {
  readonly rewriter: { retract(task: RetractionTask): Promise<RetractionResult> };
  /** A run needs memory for a whole history. */
  readonly limit: Limiter;
}

const maxTries = 20;

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
  const learner = await readRemainingLearner(ports, tenant, userId);
  const skills = skillIds.map((skillId) => describeRemainingSkill(learner, skillId, ports.now()));
  return { user_id: userId, event_id: eventId, ...skills[0], ...(skills.length > 1 && { skills }) };
}

type RemainingLearner = Awaited<ReturnType<typeof readLearner>>;

/** Null if no answers remain. */
const readRemainingLearner = (
  ports: RetractionPorts,
  tenant: string,
  userId: string,
): Promise<RemainingLearner | null> =>
  readLearner(ports, tenant, userId).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });

/** `skill` is null if no answers remain. */
function describeRemainingSkill(remaining: RemainingLearner | null, skillId: string, now: number) {
  const state = remaining?.skills.get(skillId);
  if (!remaining || !state) return { skill_id: skillId, total_attempts: 0, skill: null };
  const view = buildSkillView(skillId, state, remaining.model, now);
  return {
    skill_id: skillId,
    total_attempts: state.attempts,
    skill: describeSkill({ ...remaining, view, now }),
  };
}

async function retractWithRetries(ports: RetractionPorts, tenant: string, userId: string, eventId: string) {
  for (let tries = 0; tries < maxTries; tries++) {
    const history = await readLearnerHistory(ports, tenant, userId);
    const task = { kind: 'retraction', tenant, userId, eventId, ...history } as const;
    const result = await ports.rewriter.retract(task);
    if (result.status === 'done') return result.skillIds;
    if (result.status !== 'conflict' && result.status !== 'incomplete')
      throw rejectionErrors[result.status]();
  }
  throw unavailable(
    'The answers of this learner cannot be read completely, or more answers are arriving; retry later.',
  );
}

/** Reads the record, then Redis, then ClickHouse, to find rows that move in between. */
export async function readLearnerHistory(
  ports: LearnerHistoryPorts,
  tenant: string,
  userId: string,
): Promise<LearnerHistory> {
  const { version, attempts } = await readLearnerState(ports, tenant, userId);
  if (attempts > maxRewrittenAnswers) throw tooManyAnswers();
  const outboxRows: string[] = [];
  for await (const page of ports.pendingAttempts.readPages(tenant, userId))
    outboxRows.push(...page.flatMap(({ line, row }) => (row === null ? [] : [line])));
  const history = await ports.stored.readHistory(tenant, userId, attempts).catch((error: unknown) => {
    throw unavailable('Stored answers cannot be read now; retry later.', error);
  });
  return { version, attempts, outboxRows, ...history };
}

const tooManyAnswers = (): ApiError =>
  new ApiError('TOO_LATE', `Retraction is limited to learners with at most ${maxRewrittenAnswers} answers.`);

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
