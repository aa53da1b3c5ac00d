/**
 * All that is stored about a learner, as lines of NDJSON; never more than a page is in memory. The last line says that
 * the export is whole: an error in the middle ends the lines without it, and cuts the connection.
 */
import { createSlots } from '../../concurrency.js';
import type { AttemptRow } from '../../contracts/attempt-row.js';
import { attemptRecord, type ExportRecord, lineOf } from '../../contracts/export-record.js';
import { unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';
import type { ExportedLearner, LearnerRecords } from '../../store/learners/learner-export.js';
import type { WaitingAttempts } from '../../store/outbox/waiting-rows.js';
import type { LearnerTables } from '../../warehouse/reads/learner-rows.js';
import type { StoredAttempts } from '../../warehouse/reads/stored-attempts.js';
import { follows } from './list-attempts.js';
import { nothingKnown } from './read-mastery.js';

export interface ExportPorts {
  readonly records: LearnerRecords;
  readonly waiting: WaitingAttempts;
  readonly stored: StoredAttempts;
  readonly tables: LearnerTables;
  readonly now: () => number;
}

/** Version of the lines: fields may be added, any other change is another format. */
const format = 1;

/** In flight in one process; each holds a page of each kind. */
const maxExports = 4;
/** A reader may be slow for as long as it reads: those of one tenant leave a slot to the others. */
const maxOfTenant = 3;
const pageAnswers = 2000;
/** Event ids are remembered for a day. */
const rememberedMs = 25 * 3_600_000;

export interface LearnerExport {
  readonly lines: AsyncIterable<string>;
  /** To be called once when nobody wants the lines any more. */
  release(): void;
}

/** @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export type ExportLearner = (tenant: string, userId: string) => Promise<LearnerExport>;

/** One for the process. */
export function createLearnerExports(ports: ExportPorts): ExportLearner {
  const slots = createSlots(maxExports, maxOfTenant);
  return async (tenant, userId) => {
    if (!slots.isFree(tenant)) throw unavailable('Too many exports at once; try again later');
    slots.take(tenant);
    const release = (): void => slots.release(tenant);
    try {
      const state = await ports.records.state(tenant, userId);
      if (state === null) throw nothingKnown();
      return {
        lines: linesOf({ ...ports, tenant, userId, learner: state.learner, state: state.records }),
        release,
      };
    } catch (error) {
      release();
      throw error;
    }
  };
}

/** An export that has begun: the learner as of its beginning. */
interface Begun extends ExportPorts {
  readonly tenant: string;
  readonly userId: string;
  readonly learner: ExportedLearner['learner'];
  readonly state: ExportedLearner['records'];
}

type Page = readonly ExportRecord[];

async function* linesOf(begun: Begun): AsyncGenerator<string> {
  const { learner, tenant, userId } = begun;
  const seen = createNumbers(learner.attempts);
  let lines = 0;
  for await (const page of pagesOf(begun, seen)) {
    lines += page.length;
    yield (await mapInSlices(page, lineOf)).join('');
  }
  const now = (await begun.records.state(tenant, userId))?.learner;
  // All pages have to be of one history: an erasure or a correction in between begins another.
  if (now === undefined || !follows(learner, now))
    throw new Error('the learner was corrected during the export');
  const answers = learner.attempts;
  yield lineOf({ type: 'end', complete: true, lines: lines + 1, answers, missing: answers - seen.size() });
}

/** First what waits in Redis, then ClickHouse: an answer that moves in between is found there, and exported once. */
async function* pagesOf(begun: Begun, seen: Numbers): AsyncGenerator<Page> {
  const { tenant, userId, stored, records, now } = begun;
  const answers = begun.learner.attempts;
  const exportedAt = new Date(now()).toISOString();
  yield [{ type: 'meta', format, tenant, userId, exportedAt, answers }, ...begun.state];
  const isNew = ({ figures }: AttemptRow): boolean => seen.add(figures.learnerSeq);
  for await (const page of begun.waiting.of(tenant, userId)) {
    yield page.flatMap(({ place, line, row }) =>
      row === null ? [{ type: 'unreadable_attempt', place, row: line }] : [],
    );
    yield* withIds(
      begun,
      page.flatMap(({ place, row }) => (row !== null && isNew(row) ? [{ place, row }] : [])),
    );
  }
  for (let from = 1; from <= answers; ) {
    const range = { tenant, userId, from, to: answers, order: 'oldest first', atMost: pageAnswers } as const;
    const rows = await stored.read(range);
    yield* withIds(
      begun,
      rows.filter(isNew).map((row) => ({ place: 'clickhouse', row })),
    );
    const last = rows.length < pageAnswers ? undefined : rows.at(-1);
    from = (last?.figures.learnerSeq ?? answers) + 1;
  }
  yield* records.waiting(tenant, userId);
  yield* begun.tables.rows(tenant, userId);
}

interface PlacedRow {
  readonly place: 'clickhouse' | 'outbox' | 'parked';
  readonly row: AttemptRow;
}

/** The answers, and what is remembered of their ids. */
async function* withIds({ records, tenant, userId, now }: Begun, rows: PlacedRow[]): AsyncGenerator<Page> {
  yield await mapInSlices(rows, ({ place, row }) => attemptRecord(place, row));
  const since = now() - rememberedMs;
  const ids = rows.flatMap(({ row: { event } }) =>
    event.eventId === null || event.receivedAt < since ? [] : [event.eventId],
  );
  if (ids.length > 0) yield await records.remembered(tenant, userId, ids);
}

type Numbers = ReturnType<typeof createNumbers>;

/** A set of numbers from 1 to `last`; a bit each, for a learner may have many. */
function createNumbers(last: number) {
  const bits = new Uint8Array((last >> 3) + 1);
  let size = 0;
  return {
    size: () => size,
    /** @returns whether it is in the range and was not added before */
    add: (number: number): boolean => {
      const byte = bits[number >> 3] ?? 0;
      const bit = 1 << (number & 7);
      if (number > last || (byte & bit) !== 0) return false;
      bits[number >> 3] = byte | bit;
      size += 1;
      return true;
    },
  };
}
