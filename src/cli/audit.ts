/** Compares what was accepted with what is stored, and the rollups with the table. */
import { withAudit } from '../app/maintenance.js';
import { runAudit } from '../services/audit/audit.js';
import { parseArguments, readInteger, usageOf } from './arguments.js';
import { auditJson, auditText } from './audit-report.js';
import { commandOf, createProgress } from './command.js';
import { withDeployment } from './servers.js';

const help = `Usage: npm run audit [-- options]

Compares, by tenant and UTC day, while the service goes on:
  accepted answers (counted in Redis), less what was erased or taken back, with those that are stored in
  ClickHouse, wait in the outbox or are parked; and the stored answers with the daily rollups.

Exit code 0: all agrees. 1: something does not; a table says what, what it means and where to look.
2: it could not compare everything (a server is away, corrections or rows do not move), nothing else was found.

Options:
  --days N   the last N days, 1 to 36500 (default: all days whose accepted answers are counted, 35 or more).
             Older days than are counted are compared with their rollups only
  --json     result as one line of JSON
  --help     this text

It uses the servers of the service that runs on DATA_DIR, or starts its own.
`;

const usage = usageOf('npm run audit [-- options]');
const maxDays = 36_500;
const exitCodes = { agrees: 0, mismatch: 1, notCompared: 2 } as const;

export const main = commandOf({
  name: 'audit',
  help,
  failure: exitCodes.notCompared,
  read: (argv) => {
    const { values, positionals } = parseArguments(usage, argv, {
      days: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    });
    if (values.help) return null;
    if (positionals.length > 0) throw usage(`${JSON.stringify(positionals[0])} is no option`);
    const days = values.days === undefined ? null : readInteger(usage, '--days', values.days, 1, maxDays);
    return { days, json: values.json };
  },
  work: async (context, { days, json }) => {
    const progress = createProgress(context);
    const report = await withDeployment(context, ({ endpoints, redis }, partitions) =>
      withAudit({ redis, partitions }, endpoints, (parts) => {
        const abort = new AbortController();
        context.closers.add('audit', () => abort.abort());
        return runAudit(parts, { days, signal: abort.signal, onStep: progress.show });
      }),
    );
    progress.show('');
    context.stdout.write(`${json ? auditJson(report) : auditText(report)}\n`);
    if (report.mismatches.length > 0) context.endWith(exitCodes.mismatch);
    else context.endWith(report.notCompared.length > 0 ? exitCodes.notCompared : exitCodes.agrees);
  },
});
