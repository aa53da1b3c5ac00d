/**
 * Audits a running service by tenant and day (ADR 23): accepted = stored + outbox + parked, stored = rollups.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DayRange } from '../../contracts/schema/tenant-day.js';
import { dayMs } from '../../domain/base/common.js';
import { ApiError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { AuditRecord, AuditStore } from '../../store/audit/audit-store.js';
import {
  type AuditCheck,
  type AuditDependencies,
  createDuplicateCheck,
  createRollupCheck,
  createStoredCheck,
  type Finding,
} from './audit-checks.js';
import { type AuditReport, describeMismatch, describeReport, type Mismatch } from './audit-report.js';

export interface AuditOptions {
  /** Days back, including today; null: all counted days, at least `retainedDays`. */
  readonly days: number | null;
  readonly signal: AbortSignal;
  readonly onStep?: (step: string) => void;
  readonly maxWaitMs?: number;
  readonly pauseMs?: number;
}

/** Counts of older days are pruned if they agree. */
const retainedDays = 35;
/** Days that disagree stay longer, for investigation. */
const maxRetainedDays = 400;
/** A single check may coincide with a repair. */
const confirmingChecks = 3;
const maxLogLines = 20;
/** Data loss may cause a mismatch per day and tenant. */
const maxStoredEntries = 200;

export async function runAudit(dependencies: AuditDependencies, options: AuditOptions): Promise<AuditReport> {
  const since = performance.now();
  const { ms: at } = await dependencies.store.fetchEpoch();
  const days = await selectDays(dependencies.store, Math.floor(at / dayMs), options.days);
  const scope = { ...dependencies, days, signal: options.signal };
  const [stored, rollups] = [createStoredCheck(scope), createRollupCheck(scope)];
  const mismatches: Mismatch[] = [];
  const notCompared: string[] = [];
  for (const check of [stored, createDuplicateCheck(scope), rollups]) {
    const { confirmed, open } = await repeatUntilConfirmed(check, options);
    mismatches.push(...confirmed.flatMap(({ mismatch }) => mismatch ?? []));
    if (open.length > 0) notCompared.push(...check.describeUnconfirmed(open));
  }
  const totals = { ...stored.sumTotals(), raw: rollups.raw() };
  return { at, seconds: Math.round(performance.now() - since) / 1000, days, totals, mismatches, notCompared };
}

/** Includes tomorrow: client clocks may be a few minutes ahead. */
async function selectDays(store: AuditStore, today: number, days: number | null): Promise<DayRange> {
  const to = today + 1;
  if (days !== null) return { from: today - days + 1, to };
  const oldest = await Promise.all(store.partitions.map((partition) => store.findOldestDay(partition)));
  return { from: Math.min(today - retainedDays + 1, ...oldest), to };
}

async function repeatUntilConfirmed(
  check: AuditCheck,
  { signal, onStep = () => undefined, maxWaitMs = 30_000, pauseMs = 1000 }: AuditOptions,
): Promise<{ confirmed: readonly Finding[]; open: readonly Finding[] }> {
  const until = performance.now() + maxWaitMs;
  /** Consecutive checks with the finding. Checks with an obstacle do not count. */
  let confirmations: ReadonlyMap<string, number> = new Map();
  for (let round = 1; ; round++) {
    onStep(`${check.title}, check ${round}`);
    const findings = await check.run();
    const before = confirmations;
    confirmations = new Map(
      findings.map(({ name, obstacle }) => [name, (before.get(name) ?? 0) + (obstacle === null ? 1 : 0)]),
    );
    const isConfirmed = ({ name }: Finding): boolean => (confirmations.get(name) ?? 0) >= confirmingChecks;
    const open = findings.filter((finding) => !isConfirmed(finding));
    const isTimedOut = round >= confirmingChecks && performance.now() > until;
    if (open.length === 0 || isTimedOut) return { confirmed: findings.filter(isConfirmed), open };
    await sleep(pauseMs, undefined, { signal });
  }
}

export async function auditAndRecord(
  { logger, ...dependencies }: AuditDependencies & { readonly logger: Logger },
  options: AuditOptions,
): Promise<AuditReport> {
  const report = await runAudit(dependencies, options);
  const { at, seconds, mismatches, notCompared } = report;
  const byKind: Record<string, number> = {};
  for (const { kind } of mismatches) byKind[kind] = (byKind[kind] ?? 0) + 1;
  const end = at + 1000 * seconds;
  const storedReport = {
    ...describeReport({ ...report, mismatches: mismatches.slice(0, maxStoredEntries) }),
    not_compared: notCompared.slice(0, maxStoredEntries),
  };
  const record = { at: end, seconds, mismatches: byKind, notCompared: notCompared.length };
  await dependencies.store.save({ ...record, report: storedReport });
  logReport(report, logger);
  if (options.days === null) await pruneOldDays(dependencies, report);
  return report;
}

export interface AuditPorts {
  readonly last: () => Promise<AuditRecord | null>;
  readonly isRunning: () => Promise<boolean>;
  /** @returns false if an audit is running */
  readonly start: () => Promise<boolean>;
}

export async function readAudit({ last, isRunning }: AuditPorts): Promise<object> {
  const [record, running] = [await last(), await isRunning()];
  if (record?.report === undefined) return { running, last: null };
  const { report, mismatches, notCompared } = record;
  return { running, last: { ...report, mismatches_by_kind: mismatches, not_compared_count: notCompared } };
}

/** @throws ApiError CONFLICT if an audit is running */
export async function startAudit({ start }: AuditPorts): Promise<object> {
  if (await start()) return { running: true };
  throw new ApiError('CONFLICT', 'An audit is running; read its result with GET /api/v1/audits.');
}

function logReport({ mismatches, notCompared, totals, seconds }: AuditReport, logger: Logger): void {
  for (const mismatch of mismatches.slice(0, maxLogLines)) {
    const { meaning, ...facts } = describeMismatch(mismatch);
    logger.error(facts, `audit: ${meaning}`);
  }
  for (const reason of notCompared.slice(0, maxLogLines)) logger.warn(`audit: not compared: ${reason}`);
  const found = { mismatches: mismatches.length, notCompared: notCompared.length, seconds };
  logger[mismatches.length > 0 ? 'error' : 'info']({ ...totals, ...found }, 'audit completed');
}

/**
 * Prunes days older than `retainedDays` up to the first that disagrees, and all days older than
 * `maxRetainedDays`.
 */
async function pruneOldDays({ store }: AuditDependencies, report: AuditReport): Promise<void> {
  const today = report.days.to - 1;
  const disagreeing = report.mismatches.filter(({ kind }) => kind !== 'rollup').map(({ day }) => day);
  const lastAgreeingDay =
    report.notCompared.length > 0 ? -1 : Math.min(today - retainedDays, ...disagreeing) - 1;
  const through = Math.max(lastAgreeingDay, today - maxRetainedDays);
  for (const partition of store.partitions) await store.prune(partition, through);
}
