/**
 * Audits a running service by tenant and day (ADR 23): accepted = stored + outbox + parked, stored = rollups.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DayRange } from '../../contracts/tenant-day.js';
import { dayMs } from '../../domain/base/common.js';
import type { Logger } from '../../logger.js';
import type { AuditRecord, AuditStore } from '../../store/audit/audit-store.js';
import {
  type AuditParts,
  type Check,
  doubledCheck,
  type Finding,
  rollupCheck,
  storedCheck,
} from './checks.js';
import { type AuditReport, describe, describeReport, type Mismatch } from './report.js';

export interface AuditOptions {
  /** Days back, including today; null: all counted days, at least `retainedDays`. */
  readonly days: number | null;
  readonly signal: AbortSignal;
  readonly onStep?: (step: string) => void;
  readonly maxWaitMs?: number;
  readonly pauseMs?: number;
}

/** Counts of older days are pruned if they agree. */
const keptDays = 35;
/** Days that disagree stay longer, for investigation. */
const maxKeptDays = 400;
/** A single check may coincide with a repair. */
const certainLooks = 3;
const maxLogLines = 20;
const maxKept = 200;

export async function runAudit(parts: AuditParts, options: AuditOptions): Promise<AuditReport> {
  const since = performance.now();
  const { ms: at } = await parts.store.fetchEpoch();
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

/** Includes tomorrow: client clocks may be a few minutes ahead. */
async function daysToCompare(store: AuditStore, today: number, days: number | null): Promise<DayRange> {
  const to = today + 1;
  if (days !== null) return { from: today - days + 1, to };
  const oldest = await Promise.all(store.partitions.map((partition) => store.findOldestDay(partition)));
  return { from: Math.min(today - keptDays + 1, ...oldest), to };
}

async function repeatUntilCertain(
  check: Check,
  { signal, onStep = () => undefined, maxWaitMs = 30_000, pauseMs = 1000 }: AuditOptions,
): Promise<{ certain: readonly Finding[]; open: readonly Finding[] }> {
  const until = performance.now() + maxWaitMs;
  /** Consecutive checks with the finding. Checks with an obstacle do not count. */
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

export async function auditAndRecord(
  { logger, ...parts }: AuditParts & { readonly logger: Logger },
  options: AuditOptions,
): Promise<AuditReport> {
  const report = await runAudit(parts, options);
  const { at, seconds, mismatches, notCompared } = report;
  const byKind: Record<string, number> = {};
  for (const { kind } of mismatches) byKind[kind] = (byKind[kind] ?? 0) + 1;
  const end = at + 1000 * seconds;
  const told = {
    ...describeReport({ ...report, mismatches: mismatches.slice(0, maxKept) }),
    not_compared: notCompared.slice(0, maxKept),
  };
  const record = { at: end, seconds, mismatches: byKind, notCompared: notCompared.length };
  await parts.store.save({ ...record, report: told });
  log(report, logger);
  if (options.days === null) await forgetOldDays(parts, report);
  return report;
}

export async function readAudit(last: () => Promise<AuditRecord | null>): Promise<object> {
  const record = await last();
  if (record?.report === undefined) return { last: null };
  const { report, mismatches, notCompared } = record;
  return { last: { ...report, mismatches_by_kind: mismatches, not_compared_count: notCompared } };
}

function log({ mismatches, notCompared, totals, seconds }: AuditReport, logger: Logger): void {
  for (const mismatch of mismatches.slice(0, maxLogLines)) {
    const { meaning, ...facts } = describe(mismatch);
    logger.error(facts, `audit: ${meaning}`);
  }
  for (const reason of notCompared.slice(0, maxLogLines)) logger.warn(`audit: not compared: ${reason}`);
  const found = { mismatches: mismatches.length, notCompared: notCompared.length, seconds };
  logger[mismatches.length > 0 ? 'error' : 'info']({ ...totals, ...found }, 'audit done');
}

/** Prunes up to the first day that disagrees, and all days older than `maxRetainedDays`. */
async function forgetOldDays({ store }: AuditParts, report: AuditReport): Promise<void> {
  const today = report.days.to - 1;
  const disagreeing = report.mismatches.filter(({ kind }) => kind !== 'rollup').map(({ day }) => day);
  const agreeing = report.notCompared.length > 0 ? -1 : Math.min(today - keptDays, ...disagreeing) - 1;
  const through = Math.max(agreeing, today - maxKeptDays);
  for (const partition of store.partitions) await store.prune(partition, through);
}
