import type { ClickHouseClient } from '@clickhouse/client';
import type { Limiter } from '../../concurrency.js';
import { type AttemptRow, attemptColumns, decodeAttemptRow } from '../../contracts/answers/attempt-row.js';
import type { ExportRecord } from '../../contracts/answers/export-record.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import type { OutboxId } from '../../contracts/outbox/outbox-ids.js';
import { mapInSlices } from '../../slices.js';
import { createReadDeadline, selectNumber, selectRows, selectText } from '../clickhouse/client.js';
import { askedSkillCondition, attempts, learnerSnapshots } from '../schema/attempt-tables.js';
import { formatExportSource, type LearnerTable, learnerTables } from '../schema/learner-tables.js';
import { archivedCondition, archiveSource } from '../schema/rollups.js';

export interface SkillRange extends LearnerId {
  readonly skillId: string;
  readonly to: number;
  /** Rows with a lower outbox id belong to an erased history. */
  readonly below: OutboxId;
  readonly atMost: number;
}

/** By `learner_seq`, bounds included. */
export interface AttemptRange extends LearnerId {
  readonly from: number;
  readonly to: number;
  readonly order: 'newest first' | 'oldest first';
  readonly atMost: number;
}

const attemptsTimeoutMs = 5000;
const pageTimeoutMs = 10_000;
const pageRows = 500;

const learnerCondition = 'tenant = {tenant:String} AND user_id = {userId:String}';

/** For `decodeAttemptRow`, of `attempts AS a`. */
export const encodedColumns = attemptColumns
  .map((name) =>
    name.endsWith('_at') ? `toDecimalString(toUnixTimestamp64Milli(a.${name}) / 1000, 3)` : `a.${name}`,
  )
  .join(', ');

/** Of rows with the same number, the last counts: a Redis restored from an older copy repeats numbers. */
const buildAttemptsQuery = (
  order: AttemptRange['order'],
): string => `SELECT ${encodedColumns} FROM attempts AS a
WHERE ${learnerCondition} AND learner_seq BETWEEN {from:UInt32} AND {to:UInt32}
ORDER BY learner_seq ${order === 'newest first' ? 'DESC' : 'ASC'}, outbox_ms DESC, outbox_seq DESC
LIMIT 1 BY learner_seq LIMIT {atMost:UInt32}`;

/**
 * The first column is the answer's number on the skill, or 0 if rows and archive lack earlier answers.
 * `missing` counts the missing rows, because `learner_seq` has no gaps.
 */
const selectSkillRows = `WITH (
  SELECT (toUInt32(sum(a.attempts - a.further_attempts)), toUInt32(sumIf(a.attempts, a.skill_id = {skillId:String}))) FROM ${archiveSource}
  WHERE ${archivedCondition} AND a.tenant = {tenant:String} AND a.user_id = {userId:String}
) AS archived
SELECT if(a.missing = archived.1, archived.2 + row_number() OVER (ORDER BY a.learner_seq), 0), ${encodedColumns} FROM (
  SELECT *, learner_seq - row_number() OVER (ORDER BY learner_seq) AS missing FROM (
    SELECT * FROM attempts
    WHERE ${learnerCondition} AND learner_seq <= {to:UInt32} AND (outbox_ms, outbox_seq) >= ({belowMs:UInt64}, {belowSeq:UInt64})
    ORDER BY learner_seq, outbox_ms DESC, outbox_seq DESC LIMIT 1 BY learner_seq
  )
) AS a WHERE ${askedSkillCondition} ORDER BY learner_seq DESC LIMIT {atMost:UInt32}`;

/** Includes answers that retention deleted. */
const selectSkillCount = `SELECT toFloat64(sum(r.attempts)) AS answers FROM learner_sums AS r
WHERE ${learnerCondition} AND kind = 'total' AND day = toDate(0) AND skill_id = {skillId:String}`;

const selectEventLearners = `SELECT DISTINCT user_id AS userId FROM attempts
WHERE tenant = {tenant:String} AND event_id = {eventId:String}`;

const selectSnapshot = `SELECT state FROM ${learnerSnapshots.name} FINAL
WHERE ${learnerCondition}`;

const buildPageQuery = (learnerTable: LearnerTable): string => `SELECT *
FROM ${formatExportSource(learnerTable)} WHERE ${learnerCondition}
ORDER BY ${learnerTable.exportSource?.orderBy ?? learnerTable.table.orderBy.slice(1, -1)} LIMIT {atMost:UInt32} OFFSET {skip:UInt32}`;

export type StoredRows = ReturnType<typeof createStoredRows>;

/** The returned functions throw if ClickHouse is unavailable or slow. @param limit applies to each read */
export const createStoredRows = (client: ClickHouseClient, limit: Limiter) => ({
  readAttempts: (range: AttemptRange): Promise<AttemptRow[]> =>
    limit(range.tenant, () => readAttempts(client, range)),

  /** Newest first. `stored` counts all answers on the skill. */
  readSkillAttempts: ({ below, ...range }: SkillRange) =>
    limit(range.tenant, async () => {
      const params = { ...range, belowMs: below.ms, belowSeq: below.seq };
      // In sequence: the limit counts connections.
      const stored = await selectNumber(client, selectSkillCount, { params, signal: createReadDeadline() });
      const lines = await readText(client, selectSkillRows, params);
      return { rows: await mapInSlices(splitLines(lines), decodeNumberedRow), stored };
    }),

  /**
   * Reads rows first, because retention saves the snapshot before it deletes rows. `snapshot` is null if it
   * deleted none.
   */
  readHistory: (tenant: string, userId: string, to: number) =>
    limit(tenant, async () => {
      const storedRows = await readLines(client, {
        tenant,
        userId,
        from: 1,
        to,
        order: 'oldest first',
        atMost: to,
      });
      const params = { tenant, userId };
      const [snapshotRow] = await selectRows<{ state: string }>(client, selectSnapshot, { params });
      return { storedRows, snapshot: snapshotRow?.state ?? null };
    }),

  findLearners: async (tenant: string, eventId: string): Promise<string[]> => {
    const options = { params: { tenant, eventId }, signal: AbortSignal.timeout(attemptsTimeoutMs) };
    const rows = await limit(tenant, () =>
      selectRows<{ userId: string }>(client, selectEventLearners, options),
    );
    return rows.map(({ userId }) => userId);
  },

  readOtherTables: async function* (tenant: string, userId: string): AsyncGenerator<readonly ExportRecord[]> {
    for (const one of learnerTables.filter(({ table }) => table !== attempts))
      for (let [skip, isLast] = [0, false]; !isLast; skip += pageRows) {
        const rows = await limit(tenant, () =>
          selectRows<object>(client, buildPageQuery(one), {
            params: { tenant, userId, atMost: pageRows, skip },
            settings: { date_time_output_format: 'iso' },
            signal: AbortSignal.timeout(pageTimeoutMs),
          }),
        );
        yield rows.map((row) => ({ type: one.rowType, place: 'clickhouse', ...row }));
        isLast = rows.length < pageRows;
      }
  },
});

/** Numbers rarely have gaps: reads the whole range only if rows are missing. */
async function readAttempts(client: ClickHouseClient, range: AttemptRange): Promise<AttemptRow[]> {
  const { order, atMost, from, to } = range;
  const nearRange =
    order === 'newest first'
      ? { ...range, from: Math.max(from, to - atMost + 1) }
      : { ...range, to: Math.min(to, from + atMost - 1) };
  const rows = await decodeRows(await readLines(client, nearRange));
  const isComplete = rows.length === atMost || (nearRange.from === from && nearRange.to === to);
  return isComplete ? rows : decodeRows(await readLines(client, range));
}

const decodeRows = (lines: string): Promise<AttemptRow[]> => mapInSlices(splitLines(lines), decodeAttemptRow);

export const splitLines = (lines: string): string[] => lines.split('\n').slice(0, -1);

export type NumberedRow = ReturnType<typeof decodeNumberedRow>;

/** `number` counts answers on the skill from 1; null: unknown. */
function decodeNumberedRow(line: string) {
  const end = line.indexOf('\t');
  return { ...decodeAttemptRow(line.slice(end + 1)), number: Number(line.slice(0, end)) || null };
}

const readLines = (client: ClickHouseClient, { order, ...range }: AttemptRange): Promise<string> =>
  readText(client, buildAttemptsQuery(order), range);

const readText = (client: ClickHouseClient, query: string, params: object): Promise<string> =>
  selectText(client, query, { params, signal: AbortSignal.timeout(attemptsTimeoutMs) });
