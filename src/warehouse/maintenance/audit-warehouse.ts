/** Filters by month of arrival let ClickHouse skip parts. */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import type { OutboxId } from '../../contracts/outbox/outbox-ids.js';
import { allDays, type DayRange } from '../../contracts/schema/tenant-day.js';
import { dayMs } from '../../domain/base/common.js';
import { selectManyRows, syncReplicas } from '../clickhouse/client.js';
import type { ClusterName } from '../clickhouse/ddl.js';
import { fetchArchivedMonth } from '../reads/stored-state.js';
import { countedCondition, summedAnswers } from '../schema/attempt-tables.js';
import {
  archivedCondition,
  archiveSource,
  retainedCondition,
  rollups,
  skillDays,
} from '../schema/rollups.js';

/** Rows below `frontier` have left the outbox; `last` is the newest. */
interface OutboxEnds {
  readonly partition: number;
  readonly frontier: OutboxId;
  readonly last: OutboxId;
}

interface TenantDay {
  readonly tenant: string;
  /** UTC day since 1970. */
  readonly day: number;
}

export interface StoredDay extends TenantDay {
  readonly partition: number;
  readonly below: number;
  /**
   * Rows from `frontier` to `last`. They are in the outbox, or left its middle after a partly stored block.
   */
  readonly among: number;
}

/** Answers that share their `learner_seq` with another answer. */
export interface DuplicateDay extends TenantDay {
  readonly partition: number;
  /** Repeated rows of an outbox id. */
  readonly surplus: number;
  /** Learners with several outbox ids for one number. */
  readonly numbers: readonly (readonly [
    userId: string,
    ids: readonly (readonly [ms: number, seq: number])[],
  ])[];
}

interface AnswerSums {
  readonly answers: number;
  /** Under each of their skills. */
  readonly attempts: number;
  readonly correct: number;
}

/** Answers that occurred on a day or on `allDays`, archived ones included. `left`: not in the outbox. */
export interface RawDay extends TenantDay, AnswerSums {
  readonly left: AnswerSums;
}

export type AuditWarehouse = ReturnType<typeof createAuditWarehouse>;

const settings: ClickHouseSettings = {
  max_threads: 1,
  max_execution_time: 1800,
  max_memory_usage: '1000000000',
  max_bytes_before_external_group_by: '200000000',
  optimize_aggregation_in_order: 1,
};

type Params = Readonly<Record<string, unknown>>;

export function createAuditWarehouse(client: ClickHouseClient, cluster: ClusterName) {
  const select = <Row>(query: string, params: Params, signal: AbortSignal) =>
    selectManyRows<Row>(client, query, { params, signal, settings });

  async function selectMonths<Row>(query: string, days: DayRange, params: Params, signal: AbortSignal) {
    const found: Row[][] = [];
    for (const month of splitIntoMonths(days))
      found.push(await select<Row>(query, { ...params, ...buildTimeParams(month) }, signal));
    return found.flat();
  }

  return {
    rollups: levels.map(({ view: { name }, groupingSet }) => ({
      name,
      isDaily: groupingSet.includes('day'),
    })),
    waitForReplicas: async (signal: AbortSignal): Promise<void> => {
      for (const name of ['attempts', ...rollupNames]) await syncReplicas(client, name, cluster, signal);
    },
    /** UTC day since 1970; -1: none. */
    fetchArchivedDay: async (signal: AbortSignal): Promise<number> => {
      const month = await fetchArchivedMonth(client, signal);
      return month === 0 ? -1 : Date.UTC(Math.floor(month / 100), month % 100) / dayMs - 1;
    },
    fetchStoredDays: (days: DayRange, ends: readonly OutboxEnds[], signal: AbortSignal) =>
      selectMonths<StoredDay>(storedQuery, days, buildOutboxParams(ends), signal),
    fetchDuplicates: (days: DayRange, signal: AbortSignal) =>
      selectMonths<DuplicateDay>(duplicatesQuery, days, {}, signal),
    fetchRawSums: (days: DayRange, ends: readonly OutboxEnds[], signal: AbortSignal) => {
      // An answer can arrive minutes before its `occurred_at`, if the caller's clock is fast.
      const arrival = buildTimeParams({ from: days.from - 1, to: maxArrivalDay });
      return select<RawDay>(
        rawQuery,
        { ...buildOutboxParams(ends), ...buildDayParams(days), ...arrival },
        signal,
      );
    },
    fetchRollupSums: (days: DayRange, signal: AbortSignal) =>
      select<TenantDay & AnswerSums & { rollup: string }>(rollupQuery, buildDayParams(days), signal),
  };
}

const rollupNames = rollups.map(({ table }) => table.name);
const levels = rollups.flatMap(({ table, levels }) => levels.map((level) => ({ ...level, table })));

/** UTC day since 1970, in the year 2100: an answer may arrive any time after it occurred. */
const maxArrivalDay = 47_482;

function splitIntoMonths({ from, to }: DayRange): DayRange[] {
  const months: DayRange[] = [];
  for (let day = from; day <= to; ) {
    const date = new Date(day * dayMs);
    const next = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / dayMs;
    months.push({ from: day, to: Math.min(next - 1, to) });
    day = next;
  }
  return months;
}

/** Unix seconds, end excluded. */
const buildTimeParams = ({ from, to }: DayRange): Params => ({
  from: from * (dayMs / 1000),
  to: (to + 1) * (dayMs / 1000),
});

const buildDayParams = ({ from, to }: DayRange): Params => ({ first_day: from, last_day: to });

function buildOutboxParams(ends: readonly OutboxEnds[]): Params {
  const endsByPartition = new Map(ends.map((end) => [end.partition, end]));
  const all = Array.from({ length: Math.max(-1, ...endsByPartition.keys()) + 1 }, (_, partition) =>
    endsByPartition.get(partition),
  );
  return {
    partitions: [...endsByPartition.keys()],
    frontier_ms: all.map((end) => end?.frontier.ms ?? 0),
    frontier_seq: all.map((end) => end?.frontier.seq ?? 0),
    last_ms: all.map((end) => end?.last.ms ?? 0),
    last_seq: all.map((end) => end?.last.seq ?? 0),
  };
}

const outboxId = '(outbox_ms, outbox_seq)';
const buildBound = (name: string): string =>
  `({${name}_ms:Array(UInt64)}[partition_id + 1], {${name}_seq:Array(UInt64)}[partition_id + 1])`;
const drainedCondition = `${outboxId} < ${buildBound('frontier')}`;
/**
 * Both sides need the same type. Otherwise the engine skips parts with all times in the last millisecond
 * before whole seconds (26.7).
 */
const arrivalCondition =
  "received_at >= {from:DateTime64(3, 'UTC')} AND received_at < {to:DateTime64(3, 'UTC')}";
const buildDayCondition = (day: string): string =>
  `toUInt32(${day}) BETWEEN {first_day:UInt32} AND {last_day:UInt32}`;

const storedQuery = `
SELECT partition_id AS partition, tenant, toUInt32(toDate(received_at)) AS day,
  toUInt32(countIf(${drainedCondition})) AS below,
  toUInt32(countIf(${outboxId} BETWEEN ${buildBound('frontier')} AND ${buildBound('last')})) AS among
FROM attempts WHERE ${arrivalCondition} AND ${countedCondition} AND has({partitions:Array(UInt16)}, partition_id)
GROUP BY partition, tenant, day`;

const maxDuplicateDays = 1000;
const maxDuplicateNumbers = 20_000;

/** Rows with one outbox id are one answer. Includes erased learners, which only Redis knows. */
const duplicatesQuery = `
SELECT partition, tenant, day, toUInt32(sum(n - length(ids))) AS surplus,
  groupArrayIf(${maxDuplicateNumbers})((user_id, ids), length(ids) > 1) AS numbers
FROM (
  SELECT tenant, user_id, any(partition_id) AS partition, toUInt32(toDate(any(received_at))) AS day, count() AS n,
    groupUniqArray((toFloat64(outbox_ms), toFloat64(outbox_seq))) AS ids
  FROM attempts WHERE ${arrivalCondition} GROUP BY tenant, user_id, learner_seq HAVING n > 1
) GROUP BY partition, tenant, day ORDER BY day, tenant, partition LIMIT ${maxDuplicateDays}`;

const sumNames = ['answers', 'attempts', 'correct'];
/** Sums of a rollup or the archive with the alias. */
const selectSums = (alias: string): string =>
  `toUInt32(sum(${alias}.attempts - ${alias}.further_attempts)) AS answers, toUInt32(sum(${alias}.attempts)) AS attempts,
  toUInt32(sum(${alias}.correct)) AS correct`;
const leftSums = sumNames.map((name) => `${name} AS left_${name}`).join(', ');

/** Archived answers and earlier days have left the outbox. */
const rawQuery = `
SELECT tenant, arrayJoin(if(day_of = ${allDays}, [${allDays}], [day_of, ${allDays}])) AS day,
  ${sumNames.map((name) => `toUInt32(sum(s.${name})) AS ${name}`).join(', ')},
  CAST((${sumNames.map((name) => `sum(s.left_${name})`).join(', ')}), 'Tuple(${sumNames.map((name) => `${name} UInt32`).join(', ')})') AS left
FROM (
  SELECT tenant, toUInt32(local_date) AS day_of, sum(is_first) AS answers, count() AS attempts,
    sum(is_correct) AS correct, sumIf(is_first, ${drainedCondition}) AS left_answers,
    countIf(${drainedCondition}) AS left_attempts, countIf(is_correct AND ${drainedCondition}) AS left_correct
  FROM ${summedAnswers} WHERE ${arrivalCondition} AND ${retainedCondition} AND ${buildDayCondition('local_date')} GROUP BY tenant, day_of
  UNION ALL
  SELECT a.tenant AS tenant, toUInt32(a.day) AS day_of, ${selectSums('a')}, ${leftSums}
  FROM ${archiveSource} WHERE ${archivedCondition} AND ${buildDayCondition('a.day')} GROUP BY tenant, day_of
  UNION ALL
  SELECT r.tenant AS tenant, ${allDays} AS day_of, ${selectSums('r')}, ${leftSums}
  FROM ${skillDays.table.name} AS r WHERE NOT (${buildDayCondition('r.day')}) GROUP BY tenant
) AS s GROUP BY tenant, day`;

const rollupQuery = levels
  .map(({ table, view, groupingSet, where }) => {
    const [day, condition] = groupingSet.includes('day')
      ? ['r.day', buildDayCondition('r.day')]
      : [allDays, '1'];
    return `
SELECT '${view.name}' AS rollup, tenant, toUInt32(${day}) AS day, ${selectSums('r')}
FROM ${table.name} AS r WHERE ${where} AND ${condition} GROUP BY tenant, day`;
  })
  .join('\nUNION ALL');
