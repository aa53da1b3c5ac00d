/**
 * The audit (ADR 23): accepted = stored + in the outbox + parked, and what is stored = the rollups, by tenant and day,
 * while answers keep coming. Only what is certain is called a mismatch.
 */
import { findDoubled } from './doubled.js';
import type { AuditStore, AuditWarehouse, DayRange } from './ports.js';
import type { AuditReport, Balance } from './report.js';
import { compareRollups } from './rollups.js';
import { type AuditRun, partitionsOf } from './run.js';
import { compareStored } from './stored.js';

export interface AuditParts {
  readonly store: AuditStore;
  readonly warehouse: AuditWarehouse;
}

export interface AuditOptions {
  /** How many days back, today included; null: as far as answers are counted, at least `keptDays`. */
  readonly days: number | null;
  readonly signal: AbortSignal;
  /** Hears what is being done. */
  readonly onStep?: (step: string) => void;
  /** Milliseconds, as in AuditRun. */
  readonly patienceMs?: number;
  readonly pauseMs?: number;
}

/** Days for which accepted answers stay counted; older ones are forgotten once they agree (prune.ts). */
export const keptDays = 35;

const dayMs = 86_400_000;

/** @throws what Redis and ClickHouse throw while they are away: then nothing is known */
export async function runAudit(parts: AuditParts, options: AuditOptions): Promise<AuditReport> {
  const { onStep = () => undefined, patienceMs = 30_000, pauseMs = 1000, signal } = options;
  const since = performance.now();
  const at = await parts.store.now();
  const days = await daysToCompare(parts.store, Math.floor(at / dayMs), options.days);
  const run: AuditRun = { ...parts, days, signal, onStep, patienceMs, pauseMs };
  const stored = await compareStored(run);
  const doubled = await findDoubled(run);
  const rollups = await compareRollups(run);
  return {
    at,
    seconds: (performance.now() - since) / 1000,
    days,
    totals: { ...sumOf(stored.balances), raw: rollups.raw },
    mismatches: [...stored.mismatches, ...doubled, ...rollups.mismatches],
    notCompared: [...stored.notCompared, ...rollups.notCompared],
  };
}

/** A day more than today: an answer may have occurred a few minutes ahead of our clock. */
async function daysToCompare(store: AuditStore, today: number, days: number | null): Promise<DayRange> {
  const to = today + 1;
  if (days !== null) return { from: today - days + 1, to };
  const oldest = await Promise.all(partitionsOf(store).map((partition) => store.oldestDay(partition)));
  return { from: Math.min(today - keptDays + 1, ...oldest), to };
}

function sumOf(balances: readonly Balance[]): Balance {
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  for (const balance of balances) {
    for (const name of Object.keys(total) as (keyof Balance)[]) total[name] += balance[name];
  }
  return total;
}
