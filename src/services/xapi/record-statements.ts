import { randomUUID } from 'node:crypto';
import type { EventsRequest } from '../../compute/track-task.js';
import { findTimeProblem, type LearningEvent, maxBatchEvents, parseTime } from '../../contracts/events.js';
import { validationError } from '../../contracts/validate.js';
import type { XapiMapping } from '../../contracts/xapi/mapping.js';
import { parseStatement } from '../../contracts/xapi/statement.js';
import { ApiError, invalid, unavailable } from '../../errors.js';
import { distinct } from '../../lists.js';
import type { Logger } from '../../logger.js';
import { mapInSlices } from '../../slices.js';
import type { MappingStore } from '../../store/catalogue/xapi-mappings.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { StoredRows } from '../../warehouse/reads/stored-rows.js';
import { type RetractionPorts, retractAnswer } from '../corrections/retract-answer.js';
import type { AnswerTally, AttemptRecorder } from '../record/record-attempts.js';
import { meaningOf } from './meaning.js';

export interface StatementPorts {
  readonly recorder: AttemptRecorder;
  readonly mappings: Pick<MappingStore, 'read'>;
  readonly retraction: RetractionPorts & {
    readonly waiting: Pick<PendingAttempts, 'findLearners'>;
    readonly stored: Pick<StoredRows, 'findLearners'>;
  };
  readonly tally: AnswerTally;
  readonly logger: Pick<Logger, 'info'>;
  readonly now: () => number;
}

type Sender = Pick<EventsRequest, 'tenant' | 'span'>;

/**
 * @returns ids, including assigned ones
 * @throws ApiError INVALID_REQUEST: no answer was counted; other codes: some may be counted, and a retry is
 * safe
 */
export async function recordStatements(ports: StatementPorts, { tenant, span }: Sender, body: unknown) {
  const full = ports.recorder.full(tenant);
  if (full !== null) throw full;
  const sent: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (sent.length > maxBatchEvents) throw invalid(`More than ${maxBatchEvents} statements in one request`);
  const { value: mapping } = await ports.mappings.read(tenant);
  const now = ports.now();
  const read = await mapInSlices(sent.entries(), ([i, one]) =>
    readOne(one, Array.isArray(body) ? `${i}/` : '', mapping, now),
  );
  if (distinct(read.map(({ id }) => id.toLowerCase())).length < read.length)
    throw invalid('Two statements of the request have the same id');
  const events = read.flatMap(({ meaning }) => (meaning.kind === 'answer' ? [meaning.event] : []));
  if (events.length > 0) await count(ports.recorder, { tenant, span }, events);
  for (const { meaning } of read)
    if (meaning.kind === 'voiding') await takeBack(ports, tenant, meaning.statementId);
  const unmapped = read.filter(({ meaning }) => meaning.kind === 'unmapped').length;
  ports.tally.unmapped = (ports.tally.unmapped ?? 0) + unmapped;
  return read.map(({ id }) => id);
}

export function putStatement(ports: StatementPorts, sender: Sender, id: string, body: unknown) {
  const isOne = typeof body === 'object' && body !== null && !Array.isArray(body);
  const sent: { readonly id?: unknown } | null = isOne ? { id, ...body } : null;
  if (typeof sent?.id === 'string' && sent.id.toLowerCase() !== id.toLowerCase())
    throw validationError('statement', { path: 'id', message: 'must be the statementId of the address' });
  return recordStatements(ports, sender, sent);
}

function readOne(value: unknown, path: string, mapping: XapiMapping, now: number) {
  const statement = parseStatement(value, path);
  const { id = randomUUID(), timestamp } = statement;
  const meaning = meaningOf(statement, id.toLowerCase(), mapping);
  const late = meaning.kind === 'answer' && timestamp && findTimeProblem(parseTime(timestamp), now);
  if (late) throw validationError('statement', { path: `${path}timestamp`, message: late });
  if (meaning.kind === 'unmapped' && mapping.unmapped === 'reject')
    throw validationError('statement', {
      path: `${path}context`,
      message: 'must name the skill, as the mapping wants it',
    });
  return { id, meaning };
}

/** @throws ApiError with the rejected ids; retryable errors take precedence */
async function count(recorder: AttemptRecorder, sender: Sender, events: readonly LearningEvent[]) {
  const body = Buffer.from(JSON.stringify({ events }));
  const results = await recorder.recordBatch('batch', { ...sender, body, idempotencyKey: null });
  const refused = results.flatMap((error, i) =>
    error instanceof ApiError ? [{ error, path: events[i]?.event_id ?? '', message: error.message }] : [],
  );
  const worst = refused.find(({ error }) => error.status >= 500) ?? refused[0];
  if (worst === undefined) return;
  const { code, message, headers } = worst.error;
  const details = refused.map(({ path, message }) => ({ path, message }));
  throw new ApiError(code, message, { headers, details, cause: worst.error });
}

async function takeBack({ retraction, logger }: StatementPorts, tenant: string, id: string): Promise<void> {
  const find = retraction.limit(tenant, () => learnersOf(retraction, tenant, id));
  const learners = await find.catch((error: unknown) => {
    throw unavailable('The statement to be voided cannot be looked for right now; try again later', error);
  });
  if (learners.length === 0)
    logger.info({ tenant, statementId: id }, 'a statement to be voided is no answer');
  for (const userId of learners)
    await retractAnswer(retraction, { tenant }, userId, id).catch((error: unknown) => {
      // Already retracted; ClickHouse still has the row.
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
}

/** Redis first, to find rows that move to ClickHouse in between. */
async function learnersOf({ waiting, stored }: StatementPorts['retraction'], tenant: string, id: string) {
  const found = await waiting.findLearners(tenant, id);
  return distinct([...found, ...(await stored.findLearners(tenant, id))]);
}
