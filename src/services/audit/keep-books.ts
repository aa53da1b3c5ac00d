/** What an audit leaves behind: a record for metrics, lines in the log, and counts that are no longer needed forgotten. */
import type { Logger } from '../../telemetry.js';
import { type AuditOptions, type AuditParts, keptDays, runAudit } from './audit.js';
import type { AuditRecord } from './ports.js';
import { type AuditReport, dateOf, type Mismatch, meaningOf, whereToLook } from './report.js';
import { partitionsOf } from './run.js';

export interface AuditBooks extends AuditParts {
  readonly logger: Logger;
}

/** Lines of one audit in the log. */
const maxLines = 20;
/** Days that do not agree are kept longer, so that somebody can look; this bounds the counts. */
const longestDays = 400;

/** Runs an audit and keeps its books. @throws as runAudit */
export async function auditAndKeep(books: AuditBooks, options: AuditOptions): Promise<AuditReport> {
  const report = await runAudit(books, options);
  await books.store.keep(recordOf(report));
  tell(report, books.logger);
  if (options.days === null) await forgetOldDays(books, report);
  return report;
}

function recordOf({ at, seconds, mismatches, notCompared }: AuditReport): AuditRecord {
  const byKind: Record<string, number> = {};
  for (const { kind } of mismatches) byKind[kind] = (byKind[kind] ?? 0) + 1;
  return { at: at + 1000 * seconds, seconds, mismatches: byKind, notCompared: notCompared.length };
}

function tell({ mismatches, notCompared, totals, seconds }: AuditReport, logger: Logger): void {
  for (const mismatch of mismatches.slice(0, maxLines)) {
    logger.error(
      { ...mismatch, day: dateOf(mismatch.day), look: whereToLook(mismatch) },
      `audit: ${meaningOf(mismatch)}`,
    );
  }
  for (const reason of notCompared.slice(0, maxLines)) logger.warn(`audit: not compared: ${reason}`);
  const found = { mismatches: mismatches.length, notCompared: notCompared.length, seconds };
  logger[mismatches.length > 0 ? 'error' : 'info']({ ...totals, ...found }, 'audit done');
}

/** Only days that this audit has found to agree are forgotten, up to the first that does not. */
async function forgetOldDays({ store }: AuditBooks, report: AuditReport): Promise<void> {
  const today = report.days.to - 1;
  const disagreeing = report.mismatches.filter(isOfStored).map(({ day }) => day);
  const agreeing = report.notCompared.length > 0 ? -1 : Math.min(today - keptDays, ...disagreeing) - 1;
  const through = Math.max(agreeing, today - longestDays);
  for (const partition of partitionsOf(store)) await store.prune(partition, through);
}

const isOfStored = ({ kind }: Mismatch): boolean => kind !== 'rollup';
