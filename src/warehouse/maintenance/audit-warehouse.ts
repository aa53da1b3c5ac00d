/**
 * The audit's questions to ClickHouse. Each is asked month by month of arrival, so that whole parts are skipped, and
 * with one thread and little memory: nobody waits for the answer.
 */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { tenantDay } from '../../contracts/tenant-day.js';
import type {
  AuditWarehouse,
  DayRange,
  DoubledRows,
  PartitionLook,
  RawSums,
  SumBounds,
} from '../../services/audit/ports.js';
import { selectRows } from '../clickhouse/client.js';
import type { Cluster } from '../clickhouse/cluster.js';
import { complete } from '../ingest/repair.js';
import { rollups } from '../schema/rollups.js';
import {
  archivedQuery,
  type DoubledNumberRow,
  doubledIdsQuery,
  doubledNumbersQuery,
  type RawRow,
  type RollupRow,
  rawQuery,
  rollupQuery,
  type StoredRow,
  storedQuery,
} from './audit-queries.js';

const settings: ClickHouseSettings = {
  max_threads: 1,
  max_execution_time: 1800,
  max_memory_usage: '1000000000',
  // What is grouped beyond this goes to the disk.
  max_bytes_before_external_group_by: '200000000',
  optimize_aggregation_in_order: 1,
};

type Params = Record<string, unknown>;

/** Where the looks found the ends of the outboxes: lists with a place for each partition up to the last. */
function endsOf(looks: readonly PartitionLook[]): Params {
  const ends = new Map(looks.map((look) => [look.partition, look]));
  const all = Array.from({ length: Math.max(-1, ...ends.keys()) + 1 }, (_, partition) => ends.get(partition));
  return {
    partitions: [...ends.keys()],
    frontier_ms: all.map((look) => look?.frontier.ms ?? 0),
    frontier_seq: all.map((look) => look?.frontier.seq ?? 0),
    last_ms: all.map((look) => look?.last.ms ?? 0),
    last_seq: all.map((look) => look?.last.seq ?? 0),
  };
}

const dayMs = 86_400_000;
/** Days as bounds of a time, the end excluded. */
const timeParams = ({ from, to }: DayRange): Params => ({
  from: from * (dayMs / 1000),
  to: (to + 1) * (dayMs / 1000),
});

export function createAuditWarehouse(client: ClickHouseClient, cluster: Cluster): AuditWarehouse {
  async function* select<Row>(query: string, params: Params, signal: AbortSignal): AsyncGenerator<Row> {
    const result = await client.query({
      query,
      format: 'JSONEachRow',
      query_params: params,
      clickhouse_settings: settings,
      abort_signal: signal,
    });
    for await (const rows of result.stream<Row>()) for (const row of rows) yield row.json<Row>();
  }

  async function* eachMonth<Row>(
    query: string,
    days: DayRange,
    params: Params,
    signal: AbortSignal,
  ): AsyncGenerator<Row> {
    for (const month of monthsOf(days))
      yield* select<Row>(query, { ...params, ...timeParams(month) }, signal);
  }

  async function stored(days: DayRange, looks: readonly PartitionLook[], signal: AbortSignal) {
    const tallies = new Map(
      looks.map(({ partition }) => [partition, { below: new Map(), among: new Map() }]),
    );

    for await (const row of eachMonth<StoredRow>(storedQuery, days, endsOf(looks), signal)) {
      const name = tenantDay(row.tenant, row.day);
      tallies.get(row.partition)?.below.set(name, row.below);
      tallies.get(row.partition)?.among.set(name, row.among);
    }
    return tallies;
  }

  async function doubled<Row>(query: string, days: DayRange, signal: AbortSignal): Promise<Row[]> {
    const found: Row[] = [];
    for await (const row of eachMonth<Row>(query, days, {}, signal)) found.push(row);
    return found;
  }

  async function rawSums(days: DayRange, looks: readonly PartitionLook[], signal: AbortSignal) {
    const sums = new Map<string, RawSums>();
    const params = { ...endsOf(looks), first_day: days.from, last_day: days.to };
    // Nothing arrives long before it occurs; what arrives late may have occurred on any day.
    const since = { from: days.from - 1, to: farDay };
    for await (const row of select<RawRow>(rawQuery, { ...params, ...timeParams(since) }, signal))
      sums.set(tenantDay(row.tenant, row.day), {
        certain: { attempts: row.certain_attempts, correct: row.certain_correct },
        all: { attempts: row.attempts, correct: row.correct },
      });
    return sums;
  }

  async function rollupSums(rollup: string, days: DayRange, signal: AbortSignal) {
    const sums = new Map<string, SumBounds>();
    const params = { first_day: days.from, last_day: days.to };
    for await (const { tenant, day, ...row } of select<RollupRow>(rollupQuery(rollup), params, signal))
      sums.set(tenantDay(tenant, day), row);
    return sums;
  }

  async function archivedThroughDay(signal: AbortSignal): Promise<number> {
    const [row] = await selectRows<{ month: number }>(client, archivedQuery, signal);
    return row === undefined || row.month === 0 ? -1 : lastDayOf(row.month);
  }

  return {
    archivedThrough: archivedThroughDay,
    rollups: rollups.map(({ table }) => table.name),
    catchUp: async (signal) => {
      for (const name of ['attempts', ...rollups.map(({ table }) => table.name)])
        await complete(client, name, cluster, signal);
    },
    stored,
    doubledIds: (days, signal) => doubled<DoubledRows>(doubledIdsQuery, days, signal),
    doubledNumbers: async (days, signal) => {
      const found = await doubled<DoubledNumberRow>(doubledNumbersQuery, days, signal);
      return found.map((row) => ({ ...row, ids: row.ids.map(([ms, seq]) => ({ ms, seq })) }));
    },
    rawSums,
    rollupSums,
  };
}

/** @param month as 202601 */
const lastDayOf = (month: number): number => Date.UTC(Math.floor(month / 100), month % 100) / dayMs - 1;

/** Of the year 2100: after every arrival. */
const farDay = 47_482;

/** The days by calendar month, as `attempts` is partitioned. */
function monthsOf({ from, to }: DayRange): DayRange[] {
  const months: DayRange[] = [];
  for (let day = from; day <= to; ) {
    const date = new Date(day * dayMs);
    const next = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / dayMs;
    months.push({ from: day, to: Math.min(next - 1, to) });
    day = next;
  }
  return months;
}
