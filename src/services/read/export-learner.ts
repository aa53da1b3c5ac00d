/**
 * All that is stored about a learner, as lines of NDJSON: the states, every answer wherever it is, and the rows of every
 * other table. Never more than a page of it is in memory.
 *
 * The last line says that the export is whole. An error in the middle ends the lines without it, and what sends them
 * cuts the connection.
 */

import { createSlots } from '../../concurrency.js';
import type { AttemptRow } from '../../contracts/attempt-row.js';
import { attemptRecord, type ExportRecord, lineOf } from '../../contracts/export-record.js';
import type { LearnerState } from '../../domain/tracing/states.js';
import { unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';
import type { ExportedLearner, LearnerRecords } from '../../store/learners/told-records.js';
import type { WaitingAttempts } from '../../store/outbox/waiting-attempts.js';
import type { StoredAttempts } from '../../warehouse/reads/stored-attempts.js';
import type { LearnerTables } from '../../warehouse/reads/told-rows.js';
import { nothingKnown } from '../corrections/erasures.js';
import { follows } from './list-attempts.js';

export interface ExportPorts {
  readonly records: LearnerRecords;
  readonly waiting: WaitingAttempts;
  readonly stored: StoredAttempts;
  readonly tables: LearnerTables;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Of what the lines look like: fields may be added, anything else is another format. */
const format = 1;

/** At once in one process; each holds a page of each kind. */
const maxExports = 4;
/** A reader may be slow for as long as it reads: those of one tenant leave a place to the others. */
const maxOfTenant = 3;
const pageAnswers = 2000;
/** Event ids are remembered for a day. */
const rememberedMs = 25 * 3_600_000;

export interface LearnerExport {
  readonly lines: AsyncIterable<string>;
  /** To be called once when nobody wants the lines any more. */
  release(): void;
}

export type ExportLearner = (tenant: string, userId: string) => Promise<LearnerExport>;

/** One for the process. Its function throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export function createLearnerExports(ports: ExportPorts): ExportLearner {
  const slots = createSlots(maxExports, maxOfTenant);
  const start = async (tenant: string, userId: string): Promise<LearnerExport> => {
    const told = await ports.records.state(tenant, userId);
    if (told === null) throw nothingKnown();
    return {
      lines: linesOf(ports, tenant, userId, told),
      release: () => slots.release(tenant),
    };
  };
  return async (tenant, userId) => {
    if (!slots.isFree(tenant)) throw unavailable('Too many exports at once; try again later');
    slots.take(tenant);
    try {
      return await start(tenant, userId);
    } catch (error) {
      slots.release(tenant);
      throw error;
    }
  };
}

/** Yields the lines of one page at a time. */
async function* linesOf(
  ports: ExportPorts,
  tenant: string,
  userId: string,
  { learner, records }: ExportedLearner,
): AsyncGenerator<string> {
  const exportedAt = new Date(ports.now()).toISOString();
  const answers = learner.attempts;
  let lines = 0;
  const page = async (told: readonly ExportRecord[]): Promise<string> => {
    lines += told.length;
    return (await mapInSlices(told, lineOf)).join('');
  };
  yield page([{ type: 'meta', format, tenant, userId, exportedAt, answers }, ...records]);
  const seen = createNumbers(answers);
  for await (const told of answersOf(ports, tenant, userId, answers, seen)) yield page(told);
  for await (const told of ports.records.waiting(tenant, userId)) yield page(told);
  for await (const told of ports.tables.rows(tenant, userId)) yield page(told);
  await checkHistory(ports, tenant, userId, learner);
  const missing = answers - seen.size();
  yield lineOf({ type: 'end', complete: true, lines: lines + 1, answers, missing });
}

type Numbers = ReturnType<typeof createNumbers>;

/** Which of the numbers from 1 on have been met; a bit each, for a learner may have many. */
function createNumbers(last: number) {
  const bits = new Uint8Array((last >> 3) + 1);
  let size = 0;
  return {
    size: () => size,
    /** @returns whether it is one of them and was not met before */
    meet: (number: number): boolean => {
      if (number > last) return false;
      const bit = 1 << (number & 7);
      if (((bits[number >> 3] as number) & bit) !== 0) return false;
      bits[number >> 3] = (bits[number >> 3] as number) | bit;
      size += 1;
      return true;
    },
  };
}

/** First what waits in Redis, then ClickHouse: an answer that moves in between is found there, and told once. */
async function* answersOf(
  ports: ExportPorts,
  tenant: string,
  userId: string,
  last: number,
  seen: Numbers,
): AsyncGenerator<readonly ExportRecord[]> {
  for await (const page of ports.waiting.of(tenant, userId)) {
    yield page.flatMap(({ place, line, row }) =>
      row === null ? [{ type: 'unreadable_attempt', place, row: line }] : [],
    );
    const readable = page.flatMap(({ place, row }) => (row !== null && isNew(row) ? [{ place, row }] : []));
    yield* withIds(ports, tenant, userId, readable);
  }
  for (let from = 1; from <= last; ) {
    const range = { tenant, userId, from, to: last, order: 'oldest first', atMost: pageAnswers } as const;
    const found = await ports.stored.read(range);
    const place = 'clickhouse';
    yield* withIds(
      ports,
      tenant,
      userId,
      found.filter(isNew).map((row) => ({ place, row })),
    );
    from = found.length < pageAnswers ? last + 1 : (found.at(-1) as AttemptRow).figures.learnerSeq + 1;
  }

  function isNew({ figures }: AttemptRow): boolean {
    return seen.meet(figures.learnerSeq);
  }
}

/** With the answers what is remembered of their ids. */
async function* withIds(
  { records, now }: ExportPorts,
  tenant: string,
  userId: string,
  attempts: readonly { readonly place: Parameters<typeof attemptRecord>[0]; readonly row: AttemptRow }[],
): AsyncGenerator<readonly ExportRecord[]> {
  yield await mapInSlices(attempts, ({ place, row }) => attemptRecord(place, row));
  const since = now() - rememberedMs;
  const ids = attempts.flatMap(({ row: { event } }) =>
    event.eventId === null || event.receivedAt < since ? [] : [event.eventId],
  );
  if (ids.length > 0) yield await records.remembered(tenant, userId, ids);
}

/** What was told has to be of one history: an erasure or a correction in between begins another. */
async function checkHistory(
  { records }: ExportPorts,
  tenant: string,
  userId: string,
  before: LearnerState,
): Promise<void> {
  const now = (await records.state(tenant, userId))?.learner;
  if (now === undefined || !follows(before, now))
    throw new Error('the learner was corrected during the export');
}
