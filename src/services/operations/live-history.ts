/** @throws ApiError UNAVAILABLE */
import Type, { type Static } from 'typebox';
import { type StoredKey, toKeyId } from '../../contracts/access/access.js';
import type { Call } from '../../contracts/access/call.js';
import { computeSum, groupBy } from '../../lists.js';
import { type MinuteStore, maxHistoryHours, type StoredMinute } from '../../store/operations/minute-store.js';
import type { KeyCounts } from './key-traffic.js';
import { add, computeQuantiles, countRequests, describeRates, type MetricSnapshot } from './live-metrics.js';

export const HistoryQuery = Type.Object({
  hours: Type.Integer({
    ...{ minimum: 1, maximum: maxHistoryHours, default: 1 },
    description: 'Hours back from now, 1 by default.',
  }),
});

export interface HistoryPorts {
  readonly minutes: Pick<MinuteStore, 'readSince'>;
  readonly keys: { all(): Promise<readonly StoredKey[]> };
  readonly now: () => number;
}

/** Limits the size of a stored minute. Sums over minutes miss keys with little traffic. */
const keysPerMinute = 20;
const shownKeys = 10;

/** Growth between two snapshots of a process. @param minute since 1970 */
export function buildMinute(
  minute: number,
  before: MetricSnapshot,
  now: MetricSnapshot,
  keys: ReadonlyMap<string, KeyCounts>,
): StoredMinute {
  const { answers, statuses, buckets } = countRequests(before, now);
  const busiest = [...keys].sort(([, a], [, b]) => b.requests - a.requests).slice(0, keysPerMinute);
  const counts = busiest.map(
    ([hash, key]) => [toKeyId(hash), [key.requests, key.answers, key.errors, key.rejected]] as const,
  );
  return {
    ...{ minute, answers, statuses: Object.fromEntries(statuses), buckets: Object.fromEntries(buckets) },
    keys: Object.fromEntries(counts),
  };
}

/** Points of 1, 5 or 15 minutes. Minutes without a running service have no point. */
export async function readLiveHistory(ports: HistoryPorts, { query }: Call<Static<typeof HistoryQuery>>) {
  const { hours } = query;
  const stepMinutes = hours === 1 ? 1 : hours <= 6 ? 5 : 15;
  const end = Math.floor(ports.now() / 60_000);
  const minutes = await ports.minutes.readSince(end - hours * 60);
  const steps = groupBy(minutes, ({ minute }) => Math.floor(minute / stepMinutes));
  const points = [...steps].sort(([a], [b]) => a - b);
  return {
    ...{ hours, step_minutes: stepMinutes },
    points: points.map(([step, own]) => describePoint(step * stepMinutes, own)),
    keys: describeKeys(minutes, await ports.keys.all()),
  };
}

function describePoint(from: number, parts: readonly StoredMinute[]): object {
  const sum = (name: 'statuses' | 'buckets'): Map<string, number> => {
    const sums = new Map<string, number>();
    for (const part of parts)
      for (const [field, count] of Object.entries(part[name])) add(sums, field, count);
    return sums;
  };
  const answers = computeSum(parts.map((part) => part.answers));
  const seconds = 60 * new Set(parts.map(({ minute }) => minute)).size;
  return {
    at: new Date(from * 60_000).toISOString(),
    ...describeRates({ answers, statuses: sum('statuses') }, seconds),
    latency_ms: computeQuantiles(sum('buckets')),
  };
}

function describeKeys(minutes: readonly StoredMinute[], stored: readonly StoredKey[]): object[] {
  const totals = new Map<string, number[]>();
  for (const { keys } of minutes)
    for (const [id, counts] of Object.entries(keys))
      totals.set(
        id,
        counts.map((count, i) => count + (totals.get(id)?.[i] ?? 0)),
      );
  const known = new Map(stored.map((key) => [toKeyId(key.keyHash), key]));
  const busiest = [...totals].sort(([, [a = 0]], [, [b = 0]]) => b - a).slice(0, shownKeys);
  return busiest.map(([id, [requests, answers, errors, rejected]]) => ({
    key_id: id,
    name: known.get(id)?.name ?? null,
    tenant: known.get(id)?.tenant ?? null,
    ...{ requests, answers, errors, rejected },
  }));
}
