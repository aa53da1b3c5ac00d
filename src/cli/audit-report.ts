/** What an audit tells: a table for people, and one line of JSON. */

import { aligned, grouped } from '../lab/report/numbers.js';
import { type AuditReport, dateOf, type Mismatch, meaningOf, whereToLook } from '../services/audit/report.js';

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

function mismatchesText(mismatches: readonly Mismatch[]): string {
  const head = ['TENANT', 'DAY', 'WHAT', 'EXPECTED', 'FOUND'];
  const shown = mismatches.slice(0, shownMismatches);
  const rows = shown.map(({ tenant, day, kind, partition, place, expected, found }) => [
    tenant,
    dateOf(day),
    place ?? (partition === null ? kind : `${kind}, partition ${partition}`),
    grouped(expected),
    grouped(found),
  ]);
  const more = mismatches.length - shown.length;
  return [aligned([head, ...rows]), ...(more > 0 ? [`  and ${more} more`] : []), ...explained(shown)].join(
    '\n',
  );
}

/** Of each kind what it means, and a query for its first case. */
function explained(mismatches: readonly Mismatch[]): string[] {
  const first = new Map<string, Mismatch>();
  for (const mismatch of mismatches) {
    if (!first.has(mismatch.kind)) first.set(mismatch.kind, mismatch);
  }
  return [...first.values()].flatMap((mismatch) => [
    `${mismatch.kind}: ${meaningOf(mismatch)}`,
    `  look: ${whereToLook(mismatch)}`,
  ]);
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
    mismatches: mismatches.map((mismatch) => ({
      ...mismatch,
      day: dateOf(mismatch.day),
      meaning: meaningOf(mismatch),
      look: whereToLook(mismatch),
    })),
    not_compared: notCompared,
  });
