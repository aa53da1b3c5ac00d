/** Compares accepted with stored answers, and the rollups with the table. */
import { withMaintenance } from '../../app/operations/maintenance.js';
import { formatJsonLine, formatNumber, formatTable } from '../../lab/report/format.js';
import {
  type AuditReport,
  describeMismatch,
  describeReport,
  formatDay,
  type Mismatch,
} from '../../services/audit/audit-report.js';
import { runAudit } from '../../services/audit/run-audit.js';
import { defineArguments, integerOption, jsonFlag, rejectOperands } from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { withDeployment } from '../support/servers.js';

const exitCodes = { agrees: 0, mismatch: 1, notCompared: 2 } as const;

export const main = defineCommand({
  name: 'audit',
  failureExitCode: exitCodes.notCompared,
  ...defineArguments({
    usage: 'npm run audit [-- options]',
    about: `Compares, by tenant and UTC day, while the service goes on:
  accepted answers (counted in Redis), less what was erased or taken back, with those that are stored in
  ClickHouse, wait in the outbox or are parked; and the stored answers with the daily rollups.

Exit code 0: all agrees. 1: something does not; a table says what, what it means and where to look.
2: it could not compare everything (a server is unavailable, corrections or rows do not move), nothing else was found.`,
    options: {
      days: integerOption(
        1,
        36_500,
        `the last N days, 1 to 36500 (default: all days whose accepted answers are counted, 35 or more).
Older days than are counted are compared with their rollups only`,
      ),
      json: jsonFlag,
    },
    notes: 'It uses the servers of the service that runs on DATA_DIR, or starts its own.',
    read: rejectOperands,
  }),
  run: async (context, { days, json }) => {
    const report = await withDeployment(context, ({ endpoints, redis, signal }, partitions) =>
      withMaintenance({ redis, partitions }, endpoints, context.logger, (parts) =>
        runAudit(parts, { days, signal, onStep: context.showProgress }),
      ),
    );
    context.print(json ? formatJsonLine(describeReport(report)) : formatAudit(report));
    if (report.mismatches.length > 0) context.endWith(exitCodes.mismatch);
    else context.endWith(report.notCompared.length > 0 ? exitCodes.notCompared : exitCodes.agrees);
  },
});

function formatAudit({ days, seconds, totals, mismatches, notCompared }: AuditReport): string {
  const balance = {
    'accepted answers': totals.accepted,
    'erased or taken back': totals.removed,
    'stored in ClickHouse': totals.stored,
    'in the outbox': totals.waiting,
    parked: totals.parked,
    'stored, by day of the answer': totals.raw,
  };
  const verdict = notCompared.length > 0 ? 'no mismatch in what could be compared' : 'all agrees';
  return [
    `${formatDay(days.from)} to ${formatDay(days.to - 1)}, in ${seconds.toFixed(1)} s`,
    formatTable(Object.entries(balance).map(([name, value]) => [name, formatNumber(value)])),
    ...(mismatches.length > 0 ? [formatMismatches(mismatches)] : []),
    ...notCompared.map((what) => `not compared: ${what}`),
    mismatches.length > 0 ? `${mismatches.length} mismatches` : verdict,
  ].join('\n');
}

const maxShownMismatches = 40;

function formatMismatches(mismatches: readonly Mismatch[]): string {
  const shown = mismatches.slice(0, maxShownMismatches).map(describeMismatch);
  const rows = shown.map(({ tenant, day, kind, partition, place, expected, found }) => {
    const what = place ?? (partition === null ? kind : `${kind}, partition ${partition}`);
    return [tenant, day, what, formatNumber(expected), formatNumber(found)];
  });
  const more = mismatches.length - shown.length;
  const firsts = shown.filter(({ kind }, i) => shown.findIndex((one) => one.kind === kind) === i);
  return [
    formatTable([['TENANT', 'DAY', 'WHAT', 'EXPECTED', 'FOUND'], ...rows]),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...firsts.flatMap(({ kind, meaning, look }) => [`${kind}: ${meaning}`, `  look: ${look}`]),
  ].join('\n');
}
