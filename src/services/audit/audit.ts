/**
 * The audit (ADR 23): accepted = stored + in the outbox + parked, and what is stored = the rollups, by tenant and day,
 * while answers arrive. Only what is certain is reported as a mismatch.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DayRange } from '../../contracts/tenant-day.js';
import { dayMs } from '../../domain/base/days.js';
import type { AuditStore } from '../../store/audit/audit-store.js';
import type { AuditParts, Check, Finding } from './checks.js';
import { doubledCheck } from './doubled.js';
import type { AuditReport, Mismatch } from './report.js';
import { rollupCheck } from './rollups.js';
import { storedCheck } from './stored.js';

export interface AuditOptions {
  /** How many days back, today included; null: as far as answers are counted, at least `keptDays`. */
  readonly days: number | null;
  readonly signal: AbortSignal;
  readonly onStep?: (step: string) => void;
  /** How long a comparison waits for rows and corrections in flight, and the pause between two looks. */
  readonly maxWaitMs?: number;
  readonly pauseMs?: number;
}

/** Days for which accepted answers stay counted; older ones are forgotten once they agree (record.ts). */
export const keptDays = 35;

/** So many looks must show a mismatch: one alone may meet what a repair is mending at that moment. */
const certainLooks = 3;

/** @throws what Redis and ClickHouse throw while they are unavailable: then nothing is known */
export async function runAudit(parts: AuditParts, options: AuditOptions): Promise<AuditReport> {
  const since = performance.now();
  const { ms: at } = await parts.store.epoch();
  const days = await daysToCompare(parts.store, Math.floor(at / dayMs), options.days);
  const scope = { ...parts, days, signal: options.signal };
  const [stored, rollups] = [storedCheck(scope), rollupCheck(scope)];
  const mismatches: Mismatch[] = [];
  const notCompared: string[] = [];
  for (const check of [stored, doubledCheck(scope), rollups]) {
    const { certain, open } = await repeatUntilCertain(check, options);
    mismatches.push(...certain.flatMap(({ mismatch }) => mismatch ?? []));
    if (open.length > 0) notCompared.push(...check.undecided(open));
  }
  const totals = { ...stored.totals(), raw: rollups.raw() };
  return { at, seconds: (performance.now() - since) / 1000, days, totals, mismatches, notCompared };
}

/** A day more than today: an answer may have occurred a few minutes ahead of our clock. */
async function daysToCompare(store: AuditStore, today: number, days: number | null): Promise<DayRange> {
  const to = today + 1;
  if (days !== null) return { from: today - days + 1, to };
  const oldest = await Promise.all(store.partitions.map((partition) => store.oldestDay(partition)));
  return { from: Math.min(today - keptDays + 1, ...oldest), to };
}

async function repeatUntilCertain(
  check: Check,
  { signal, onStep = () => undefined, maxWaitMs = 30_000, pauseMs = 1000 }: AuditOptions,
): Promise<{ certain: readonly Finding[]; open: readonly Finding[] }> {
  const until = performance.now() + maxWaitMs;
  /** Looks in a row that have shown a finding, without those with an obstacle. */
  let looks: ReadonlyMap<string, number> = new Map();
  for (let round = 1; ; round++) {
    onStep(`${check.title}, look ${round}`);
    const findings = await check.look();
    const before = looks;
    looks = new Map(
      findings.map(({ name, obstacle }) => [name, (before.get(name) ?? 0) + (obstacle === null ? 1 : 0)]),
    );
    const isCertain = ({ name }: Finding): boolean => (looks.get(name) ?? 0) >= certainLooks;
    const open = findings.filter((finding) => !isCertain(finding));
    const isOver = round >= certainLooks && performance.now() > until;
    if (open.length === 0 || isOver) return { certain: findings.filter(isCertain), open };
    await sleep(pauseMs, undefined, { signal });
  }
}
