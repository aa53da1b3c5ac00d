/** The result of an audit: a table for people, and one line of JSON. */

import { aligned, grouped } from '../lab/report/numbers.js';
import { type AuditReport, dateOf, describe, type Mismatch } from '../services/audit/report.js';

/** Rows of the table; the others are counted. */
const shownMismatches = 40;

export function auditText(report: AuditReport): string {
  const { days, seconds, mismatches, notCompared } = report;
  return [
    `${dateOf(days.from)} to ${dateOf(days.to - 1)}, in ${seconds.toFixed(1)} s`,
    balanceText(report),
    ...(mismatches.length > 0 ? [mismatchesText(mismatches)] : []),
    ...notCompared.map((what) => `not compared: ${what}`),
    verdictOf(report),
  ].join('\n');
}

function balanceText({ totals }: AuditReport): string {
  const { accepted, removed, stored, waiting, parked, raw } = totals;
  const rows = Object.entries({
    'accepted answers': accepted,
    'erased or taken back': removed,
    'stored in ClickHouse': stored,
    'in the outbox': waiting,
    parked,
    'stored, by day of the answer': raw,
  });
  return aligned(rows.map(([name, value]) => [name, grouped(value)]));
}

/** A table, then of each kind what it means, and a query for its first case. */
function mismatchesText(mismatches: readonly Mismatch[]): string {
  const shown = mismatches.slice(0, shownMismatches).map(describe);
  const rows = shown.map(({ tenant, day, kind, partition, place, expected, found }) => {
    const what = place ?? (partition === null ? kind : `${kind}, partition ${partition}`);
    return [tenant, day, what, grouped(expected), grouped(found)];
  });
  const more = mismatches.length - shown.length;
  const isFirst = ({ kind }: Pick<Mismatch, 'kind'>, i: number) =>
    shown.findIndex((one) => one.kind === kind) === i;
  return [
    aligned([['TENANT', 'DAY', 'WHAT', 'EXPECTED', 'FOUND'], ...rows]),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...shown.filter(isFirst).flatMap(({ kind, meaning, look }) => [`${kind}: ${meaning}`, `  look: ${look}`]),
  ].join('\n');
}

function verdictOf({ mismatches, notCompared }: AuditReport): string {
  if (mismatches.length > 0) return `${mismatches.length} mismatches`;
  return notCompared.length > 0 ? 'no mismatch in what could be compared' : 'all agrees';
}

export const auditJson = ({ at, seconds, days, totals, mismatches, notCompared }: AuditReport): string =>
  JSON.stringify({
    at: new Date(at).toISOString(),
    seconds: Number(seconds.toFixed(3)),
    from: dateOf(days.from),
    to: dateOf(days.to - 1),
    ...totals,
    mismatches: mismatches.map(describe),
    not_compared: notCompared,
  });
