import { randomUUID } from 'node:crypto';
import type { EventsRequest } from '../../compute/track-task.js';
import type { Call } from '../../contracts/access/call.js';
import {
  findTimeProblem,
  type LearningEvent,
  maxBatchEvents,
  maxQuestionSkills,
  parseTime,
} from '../../contracts/answers/events.js';
import { validationError } from '../../contracts/schema/validate.js';
import type { XapiMapping } from '../../contracts/xapi/mapping.js';
import { parseStatement } from '../../contracts/xapi/statement.js';
import { ApiError, invalid, unavailable } from '../../errors.js';
import { distinct } from '../../lists.js';
import type { Logger } from '../../logger.js';
import { mapInSlices } from '../../slices.js';
import type { MappingStore } from '../../store/catalogue/xapi-mappings.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { StoredRows } from '../../warehouse/reads/stored-rows.js';
import type { AnswerTally, AttemptRecorder } from '../answers/record-attempts.js';
import { type RetractionPorts, retractAnswer } from '../corrections/retract-answer.js';
import { interpretStatement } from './interpret-statement.js';

export interface StatementPorts {
  readonly recorder: AttemptRecorder;
  readonly mappings: Pick<MappingStore, 'read'>;
  readonly retraction: RetractionPorts & {
    readonly pendingAttempts: Pick<PendingAttempts, 'findLearners'>;
    readonly stored: Pick<StoredRows, 'findLearners'>;
  };
  readonly tally: AnswerTally;
  readonly logger: Pick<Logger, 'info'>;
  readonly now: () => number;
}

type Sender = Pick<EventsRequest, 'tenant' | 'span'> & Pick<Call, 'grant'>;

/**
 * @returns ids, including assigned ones
 * @throws ApiError INVALID_REQUEST: no answer was counted; other codes: some may be counted, and a retry is
 * safe
 */
export async function recordStatements(ports: StatementPorts, sender: Sender, body: unknown) {
  const { tenant } = sender;
  const overload = ports.recorder.findOverload(tenant);
  if (overload !== null) throw overload;
  const sent: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (sent.length > maxBatchEvents)
    throw invalid(`The request has more than ${maxBatchEvents} statements; send several requests.`);
  const { value: mapping } = await ports.mappings.read(tenant);
  const now = ports.now();
  const parsed = await mapInSlices(sent.entries(), ([i, one]) =>
    parseAndInterpret(one, Array.isArray(body) ? `${i}/` : '', mapping, now),
  );
  if (distinct(parsed.map(({ id }) => id.toLowerCase())).length < parsed.length)
    throw invalid('Two statements of the request have the same id.');
  const events = parsed.flatMap(({ meaning }) => (meaning.kind === 'answer' ? [meaning.event] : []));
  if (events.length > 0) await recordAnswers(ports.recorder, sender, events);
  for (const { meaning } of parsed)
    if (meaning.kind === 'voiding') await retractVoided(ports, tenant, meaning.statementId);
  const unmapped = parsed.filter(({ meaning }) => meaning.kind === 'unmapped').length;
  ports.tally.unmapped = (ports.tally.unmapped ?? 0) + unmapped;
  return parsed.map(({ id }) => id);
}

export function putStatement(ports: StatementPorts, sender: Sender, id: string, body: unknown) {
  const isOne = typeof body === 'object' && body !== null && !Array.isArray(body);
  const sent: { readonly id?: unknown } | null = isOne ? { id, ...body } : null;
  if (typeof sent?.id === 'string' && sent.id.toLowerCase() !== id.toLowerCase())
    throw validationError('statement', { path: 'id', message: 'must equal the statementId in the query' });
  return recordStatements(ports, sender, sent);
}

function parseAndInterpret(value: unknown, path: string, mapping: XapiMapping, now: number) {
  const statement = parseStatement(value, path);
  const { id = randomUUID(), timestamp } = statement;
  const meaning = interpretStatement(statement, id.toLowerCase(), mapping);
  const timestampProblem =
    meaning.kind === 'answer' && timestamp && findTimeProblem(parseTime(timestamp), now);
  if (timestampProblem)
    throw validationError('statement', { path: `${path}timestamp`, message: timestampProblem });
  if (meaning.kind === 'unmapped' && mapping.unmapped === 'reject')
    throw validationError('statement', {
      path: `${path}context`,
      message: `must name 1 to ${maxQuestionSkills} skills as defined in the xAPI mapping`,
    });
  return { id, meaning };
}

/** @throws ApiError with the rejected ids; retryable errors take precedence */
async function recordAnswers(recorder: AttemptRecorder, sender: Sender, events: readonly LearningEvent[]) {
  const body = Buffer.from(JSON.stringify({ events }));
  const { tenant, span, grant } = sender;
  const request = { tenant, span, grant, body, idempotencyKey: null };
  const results = await recorder.recordBatch('batch', request);
  const rejected = results.flatMap((error, i) =>
    error instanceof ApiError ? [{ error, path: events[i]?.event_id ?? '', message: error.message }] : [],
  );
  const worst = rejected.find(({ error }) => error.status >= 500) ?? rejected[0];
  if (worst === undefined) return;
  const { code, message, headers } = worst.error;
  const details = rejected.map(({ path, message }) => ({ path, message }));
  throw new ApiError(code, message, { headers, details, cause: worst.error });
}

async function retractVoided(
  { retraction, logger }: StatementPorts,
  tenant: string,
  id: string,
): Promise<void> {
  const find = retraction.limit(tenant, () => findLearners(retraction, tenant, id));
  const learners = await find.catch((error: unknown) => {
    throw unavailable('The statement to void cannot be looked up now; retry later.', error);
  });
  if (learners.length === 0)
    logger.info({ tenant, statementId: id }, 'the statement to void is not a recorded answer');
  for (const userId of learners)
    await retractAnswer(retraction, { tenant }, userId, id).catch((error: unknown) => {
      // Already retracted; ClickHouse still has the row.
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
}

/** Redis first, to find rows that move to ClickHouse in between. */
async function findLearners(
  { pendingAttempts, stored }: StatementPorts['retraction'],
  tenant: string,
  id: string,
) {
  const found = await pendingAttempts.findLearners(tenant, id);
  return distinct([...found, ...(await stored.findLearners(tenant, id))]);
}
