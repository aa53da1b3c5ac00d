/** Compares accepted with stored answers, and the rollups with the table. */
import { withMaintenance } from '../../app/operations/maintenance.js';
import { formatJsonLine, formatNumber, formatTable } from '../../lab/report/format.js';
import {
  type AuditReport,
  describeMismatch,
  describeReport,
  formatAuditDay,
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
    about: `Checks for every tenant that each accepted answer is stored, by UTC day of arrival, and that the rollups match the
answers, by local day of the tenant.
The service can keep running.`,
    options: {
      days: integerOption(
        1,
        36_500,
        `check the last N days, 1 to 36500 (default: all days with counters of accepted answers,
at least 35); for older days only the rollups are checked`,
      ),
      json: jsonFlag,
    },
    examples: ['npm run audit', 'npm run audit -- --days 7 --json'],
    notes: `The audit compares accepted answers (counted in Redis, minus erased and retracted ones) with the answers that are
stored in ClickHouse, waiting in the outbox or dead-lettered.

Exit codes:
  0  no mismatch
  1  mismatches; a table lists each one, its meaning and a query to investigate it
  2  no mismatch, but a part could not be compared (a server is unavailable, or rows or corrections are stuck);
     also wrong options

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
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
    'erased or retracted': totals.removed,
    'stored in ClickHouse': totals.stored,
    'in the outbox': totals.waiting,
    'dead-lettered': totals.parked,
    'stored, by local day': totals.raw,
  };
  const verdict = notCompared.length > 0 ? 'no mismatch in the compared parts' : 'no mismatch';
  return [
    `${formatAuditDay(days.from)} to ${formatAuditDay(days.to - 1)}, in ${seconds.toFixed(1)} s`,
    formatTable(Object.entries(balance).map(([name, value]) => [name, formatNumber(value)])),
    ...(mismatches.length > 0 ? [formatMismatches(mismatches)] : []),
    ...notCompared.map((what) => `Not compared: ${what}`),
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
    formatTable([['TENANT', 'DAY', 'CHECK', 'EXPECTED', 'FOUND'], ...rows]),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...firsts.flatMap(({ kind, meaning, look }) => [`${kind}: ${meaning}`, `  investigate: ${look}`]),
  ].join('\n');
}
