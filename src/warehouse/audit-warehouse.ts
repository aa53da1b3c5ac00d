/**
 * The audit's questions to ClickHouse. Each is asked month by month of arrival, so that whole parts are skipped, and
 * with one thread and little memory: nobody waits for the answer.
 */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { tenantDay } from '../contracts/tenant-day.js';
import type {
  AuditWarehouse,
  DayRange,
  DoubledRows,
  OutboxId,
  PartitionLook,
  RawSums,
  SumBounds,
} from '../services/audit/ports.js';
import {
  doubledIdsQuery,
  doubledNumbersQuery,
  type RawRow,
  type RollupRow,
  rawQuery,
  rollupQuery,
  type StoredRow,
  storedQuery,
} from './audit-queries.js';
import type { Cluster } from './cluster.js';
import { complete } from './repair.js';
import { rollups } from './rollups.js';

const settings: ClickHouseSettings = {
  max_threads: 1,
  max_execution_time: 1800,
  max_memory_usage: '1000000000',
  // What is grouped beyond this goes to the disk.
  max_bytes_before_external_group_by: '200000000',
  optimize_aggregation_in_order: 1,
};

type Params = Record<string, unknown>;

const boundParams = (name: string, ids: readonly OutboxId[]): Params => ({
  [`${name}_ms`]: ids.map(({ ms }) => ms),
  [`${name}_seq`]: ids.map(({ seq }) => seq),
});

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

  async function stored(days: DayRange, frontiers: readonly OutboxId[], signal: AbortSignal) {
    const tallies = frontiers.map(() => new Map<string, number>());
    const rows = eachMonth<StoredRow>(storedQuery, days, boundParams('below', frontiers), signal);
    for await (const { partition, tenant, day, answers } of rows)
      tallies[partition]?.set(tenantDay(tenant, day), answers);
    return tallies;
  }

  async function doubled(query: string, days: DayRange, signal: AbortSignal): Promise<DoubledRows[]> {
    const found: DoubledRows[] = [];
    for await (const row of eachMonth<DoubledRows>(query, days, {}, signal)) found.push(row);
    return found;
  }

  async function rawSums(
    days: DayRange,
    first: readonly PartitionLook[],
    second: readonly PartitionLook[],
    signal: AbortSignal,
  ): Promise<Map<string, RawSums>> {
    const sums = new Map<string, RawSums>();
    const params = {
      ...boundParams(
        'first',
        first.map(({ frontier }) => frontier),
      ),
      ...boundParams(
        'second',
        second.map(({ frontier }) => frontier),
      ),
      ...boundParams(
        'last',
        second.map(({ last }) => last),
      ),
      first_day: days.from,
      last_day: days.to,
    };
    // Nothing arrives long before it occurs; what arrives late may have occurred on any day.
    const since = { from: days.from - 1, to: farDay };
    for await (const row of select<RawRow>(rawQuery, { ...params, ...timeParams(since) }, signal))
      sums.set(tenantDay(row.tenant, row.day), {
        first: { attempts: row.first_attempts, correct: row.first_correct },
        second: { attempts: row.second_attempts, correct: row.second_correct },
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

  return {
    rollups: rollups.map(({ table }) => table.name),
    catchUp: async (signal) => {
      for (const name of ['attempts', ...rollups.map(({ table }) => table.name)])
        await complete(client, name, cluster, signal);
    },
    stored,
    doubledIds: (days, signal) => doubled(doubledIdsQuery, days, signal),
    doubledNumbers: (days, signal) => doubled(doubledNumbersQuery, days, signal),
    rawSums,
    rollupSums,
  };
}

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
