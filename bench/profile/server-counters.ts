import { readdirSync, readFileSync } from 'node:fs';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Redis } from 'ioredis';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { readOrDefault, readThreadSeconds } from '../targets/processes.js';

export type Counters = Readonly<Record<string, number>>;

export const subtractCounters = (before: Counters, after: Counters): Record<string, number> =>
  Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));

/** EXEC includes its commands, which are also listed. */
export async function readCommandCounters(redis: Pick<Redis, 'info'>): Promise<Record<string, Counters>> {
  const lines = [...(await redis.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)];
  return {
    'Redis commands, µs': Object.fromEntries(lines.map(([, name, , micros]) => [name, Number(micros)])),
    'Redis commands, calls': Object.fromEntries(lines.map(([, name, calls]) => [name, Number(calls)])),
  };
}

/** The embedded engine has no system.query_log. Query times are wall-clock times. */
const eventsQuery = `SELECT event, toFloat64(value) AS value FROM system.events WHERE event IN ('InsertQuery', 'SelectQuery',
  'InsertQueryTimeMicroseconds', 'SelectQueryTimeMicroseconds', 'OtherQueryTimeMicroseconds', 'InsertedRows',
  'Merge', 'MergedRows', 'MergeTotalMilliseconds', 'UserTimeMicroseconds', 'SystemTimeMicroseconds')`;

export async function readEngineCounters(clickhouse: ClickHouseClient): Promise<Counters> {
  const rows = await selectRows<{ event: string; value: number }>(clickhouse, eventsQuery);
  return Object.fromEntries(rows.map(({ event, value }) => [event, value]));
}

/** CPU µs of living threads. */
export function readThreadCounters(pid: number): Counters {
  const sums: Record<string, number> = {};
  for (const tid of process.platform === 'linux' ? readdirSync(`/proc/${pid}/task`).map(Number) : []) {
    const name = readOrDefault(() => readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim(), 'ended');
    sums[name] = (sums[name] ?? 0) + 1e6 * readThreadSeconds(pid, tid);
  }
  return sums;
}
