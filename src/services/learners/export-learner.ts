/** NDJSON export of a learner. An error cuts the connection before the `end` line. */
import { createPermits } from '../../concurrency.js';
import type { AttemptRow } from '../../contracts/answers/attempt-row.js';
import {
  type ExportRecord,
  formatExportLine,
  toAttemptRecord,
} from '../../contracts/answers/export-record.js';
import { unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';
import type { ExportedLearner, LearnerExport } from '../../store/learners/learner-reads.js';
import type { PendingAttempts } from '../../store/outbox/pending-rows.js';
import type { StoredRows } from '../../warehouse/reads/stored-rows.js';
import { continuesHistory } from './list-attempts.js';
import { learnerNotFound } from './read-mastery.js';

export interface ExportPorts {
  readonly records: LearnerExport;
  readonly pendingAttempts: PendingAttempts;
  readonly stored: Pick<StoredRows, 'readAttempts' | 'readOtherTables'>;
  readonly now: () => number;
}

/** Added fields keep the version; any other change needs a new one. */
const formatVersion = 1;

const maxExports = 4;
/** Readers may be slow, so each tenant leaves a slot to others. */
const maxTenantExports = 3;
const maxPageAnswers = 2000;
const idRetentionMs = 25 * 3_600_000;

/** Call the returned `release` once, when the response has ended, complete or not. */
export type ExportLearner = ReturnType<typeof createLearnerExports>;

export function createLearnerExports(ports: ExportPorts) {
  const slots = createPermits(maxExports, maxTenantExports);
  return async (tenant: string, userId: string) => {
    if (!slots.isFree(tenant)) throw unavailable('Too many exports are in progress; retry later.');
    slots.acquire(tenant);
    const release = (): void => slots.release(tenant);
    try {
      const startState = await ports.records.readState(tenant, userId);
      if (startState === null) throw learnerNotFound();
      return { lines: generateLines({ ...ports, tenant, userId, startState }), release };
    } catch (error) {
      release();
      throw error;
    }
  };
}

interface Export extends ExportPorts {
  readonly tenant: string;
  readonly userId: string;
  readonly startState: ExportedLearner;
}

type Page = readonly ExportRecord[];

type SeenAnswers = { readonly flags: Uint8Array; count: number };

async function* generateLines(one: Export): AsyncGenerator<string> {
  const { tenant, userId } = one;
  const { learner } = one.startState;
  const answers = learner.attempts;
  const seen: SeenAnswers = { flags: new Uint8Array(answers + 1), count: 0 };
  let lines = 0;
  for await (const page of generatePages(one, seen)) {
    lines += page.length;
    yield (await mapInSlices(page, formatExportLine)).join('');
  }
  const now = (await one.records.readState(tenant, userId))?.learner;
  // All pages must belong to one history. A correction starts another one.
  if (now === undefined || !continuesHistory(learner, now))
    throw new Error('answers of the learner were rewritten during the export (retraction or time zone)');
  yield formatExportLine({
    type: 'end',
    complete: true,
    lines: lines + 1,
    answers,
    missing: answers - seen.count,
  });
}

/** Redis first, then ClickHouse, to find answers that move in between. */
async function* generatePages(one: Export, seen: SeenAnswers): AsyncGenerator<Page> {
  const { tenant, userId, stored, records, startState } = one;
  const answers = startState.learner.attempts;
  const exportedAt = new Date(one.now()).toISOString();
  yield [{ type: 'meta', format: formatVersion, tenant, userId, exportedAt, answers }, ...startState.records];
  const isNew = ({ figures: { learnerSeq } }: AttemptRow): boolean => {
    if (seen.flags[learnerSeq] !== 0) return false;
    seen.flags[learnerSeq] = 1;
    seen.count += 1;
    return true;
  };
  for await (const page of one.pendingAttempts.readPages(tenant, userId)) {
    yield page.flatMap(({ place, line, row }) =>
      row === null ? [{ type: 'unreadable_attempt', place, row: line }] : [],
    );
    yield* withIds(
      one,
      page.flatMap(({ place, row }) => (row !== null && isNew(row) ? [{ place, row }] : [])),
    );
  }
  for (let from = 1; from <= answers; ) {
    const range = {
      tenant,
      userId,
      from,
      to: answers,
      order: 'oldest first',
      atMost: maxPageAnswers,
    } as const;
    const rows = await stored.readAttempts(range);
    yield* withIds(
      one,
      rows.filter(isNew).map((row) => ({ place: 'clickhouse', row })),
    );
    const last = rows.length < maxPageAnswers ? undefined : rows.at(-1);
    from = (last?.figures.learnerSeq ?? answers) + 1;
  }
  yield* records.readPending(tenant, userId);
  yield* one.stored.readOtherTables(tenant, userId);
}

interface LocatedAttempt {
  readonly place: Parameters<typeof toAttemptRecord>[0];
  readonly row: AttemptRow;
}

async function* withIds(
  { records, tenant, userId, now }: Export,
  rows: LocatedAttempt[],
): AsyncGenerator<Page> {
  yield await mapInSlices(rows, ({ place, row }) => toAttemptRecord(place, row));
  const since = now() - idRetentionMs;
  const events = rows.flatMap(({ row: { event } }) => {
    const { eventId, skillIds, receivedAt } = event;
    return eventId === null || receivedAt < since ? [] : [{ eventId, skillIds }];
  });
  if (events.length > 0) yield await records.readEventIds(tenant, userId, events);
}
