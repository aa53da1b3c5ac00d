/** What an import prints: its summary, and a line that changes on a terminal. */

import { grouped } from '../lab/report/numbers.js';
import type { ImportFigures } from '../services/import/import-attempts.js';

export interface ImportSummary extends ImportFigures {
  readonly file: string;
  readonly tenant: string;
  readonly rejectsFile: string | null;
  /** Line after which a resumed run went on; 0 for a run from the start. */
  readonly resumedAfter: number;
  readonly seconds: number;
  /** Whether every row is in ClickHouse. */
  readonly stored: boolean;
  /** A further word that the user should read. */
  readonly notes: readonly string[];
}

export function summaryJson(summary: ImportSummary): string {
  return JSON.stringify({
    file: summary.file,
    tenant: summary.tenant,
    rows: summary.rows,
    counted: summary.counted,
    skipped: summary.skipped,
    rejected: summary.rejected,
    rejects_file: summary.rejectsFile,
    backwards: summary.backwards,
    resumed_after_line: summary.resumedAfter,
    seconds: Number(summary.seconds.toFixed(3)),
    rows_per_second: rate(summary),
    stored: summary.stored,
    notes: summary.notes,
  });
}

export function summaryText(summary: ImportSummary): string {
  const { rows, counted, skipped, rejected, backwards, resumedAfter, rejectsFile } = summary;
  const lines = [
    `${grouped(rows)} rows of ${summary.file} for tenant ${summary.tenant}`,
    `  ${grouped(counted)} counted in ${summary.seconds.toFixed(1)} s, ${grouped(rate(summary))} a second`,
  ];
  if (skipped > 0) lines.push(`  ${grouped(skipped)} skipped, counted before`);
  if (resumedAfter > 0) lines.push(`  resumed after line ${grouped(resumedAfter)}`);
  lines.push(`  ${grouped(rejected)} rejected${rejectsFile === null ? '' : `, see ${rejectsFile}`}`);
  if (backwards > 0)
    lines.push(`  ${grouped(backwards)} with an order below that of the learner's row before`);
  for (const note of summary.notes) lines.push(`  Note: ${note}`);
  return lines.join('\n');
}

const rate = ({ counted, seconds }: ImportSummary): number => Math.round(counted / Math.max(seconds, 0.001));

export interface ProgressFigures extends Readonly<ImportFigures> {
  /** Of the file, 0 to 1. */
  readonly share: number;
  readonly seconds: number;
  /** Rows that are not in ClickHouse yet; null while that is not known. */
  readonly backlog: number | null;
}

export function progressText(figures: ProgressFigures): string {
  const { rows, counted, rejected, backlog, share, seconds } = figures;
  const perSecond = grouped(Math.round(counted / Math.max(seconds, 0.001)));
  const waiting = backlog === null ? '' : `, ${grouped(backlog)} wait for ClickHouse`;
  return `${Math.floor(100 * share)} %, ${grouped(rows)} rows, ${perSecond}/s, ${grouped(rejected)} rejected${waiting}`;
}
