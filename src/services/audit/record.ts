/** What an audit leaves behind: a record for metrics, lines in the log, and no counts that are no longer needed. */
import type { Logger } from '../../telemetry.js';
import { type AuditOptions, keptDays, runAudit } from './audit.js';
import type { AuditParts } from './checks.js';
import { type AuditReport, describe } from './report.js';

const maxLogLines = 20;
/** Days that do not agree are kept longer, so that somebody can look; this bounds the counts. */
const maxKeptDays = 400;

/** Runs an audit, records and logs its result, and forgets old days that agree. @throws as runAudit */
export async function auditAndRecord(
  { logger, ...parts }: AuditParts & { readonly logger: Logger },
  options: AuditOptions,
): Promise<AuditReport> {
  const report = await runAudit(parts, options);
  const { at, seconds, mismatches, notCompared } = report;
  const byKind: Record<string, number> = {};
  for (const { kind } of mismatches) byKind[kind] = (byKind[kind] ?? 0) + 1;
  const end = at + 1000 * seconds;
  await parts.store.keep({ at: end, seconds, mismatches: byKind, notCompared: notCompared.length });
  log(report, logger);
  if (options.days === null) await forgetOldDays(parts, report);
  return report;
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

/** Only days that this audit has found to agree are forgotten, up to the first that does not. */
async function forgetOldDays({ store }: AuditParts, report: AuditReport): Promise<void> {
  const today = report.days.to - 1;
  const disagreeing = report.mismatches.filter(({ kind }) => kind !== 'rollup').map(({ day }) => day);
  const agreeing = report.notCompared.length > 0 ? -1 : Math.min(today - keptDays, ...disagreeing) - 1;
  const through = Math.max(agreeing, today - maxKeptDays);
  for (const partition of store.partitions) await store.prune(partition, through);
}
