/** Drops old answers now, or says which ones it would drop. */
import { withRetention } from '../app/maintenance.js';
import { aligned } from '../lab/report/numbers.js';
import {
  lastMonthOlderThan,
  planRetention,
  type RetentionPlan,
  retainAnswers,
} from '../services/retention/retain-answers.js';
import { parseArguments, readInteger, usageOf } from './arguments.js';
import { commandOf } from './command.js';
import { withDeployment } from './servers.js';

const help = `Usage: npm run retain [-- options]

Drops stored answers and scored forecasts that are old, whole months of arrival, as the service does by itself with
ATTEMPT_RETENTION_DAYS. Their daily sums and what learners know stay. There is no way back but a backup.

Options:
  --dry-run   tell what would be dropped, drop nothing
  --days N    age in days, 1 to 36500 (default: ATTEMPT_RETENTION_DAYS)
  --help      this text

A month whose answers may still be on their way has to wait; the log says for what.
It uses the servers of the service that runs on DATA_DIR, or starts its own.
`;

const usage = usageOf('npm run retain [-- options]');
const maxDays = 36_500;

export const main = commandOf({
  name: 'retain',
  help,
  read: (argv) => {
    const { values, positionals } = parseArguments(usage, argv, {
      days: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    });
    if (values.help) return null;
    if (positionals.length > 0) throw usage(`${JSON.stringify(positionals[0])} is no option`);
    const days = values.days === undefined ? null : readInteger(usage, '--days', values.days, 1, maxDays);
    return { days, dryRun: values['dry-run'] };
  },
  work: async (context, { days, dryRun }) => {
    const { config, logger, closers, stdout } = context;
    const age = days ?? config.attemptRetentionDays;
    if (age === 0) throw usage('ATTEMPT_RETENTION_DAYS is 0, answers are kept for ever: --days is needed');
    await withDeployment(context, ({ endpoints, redis }, partitions) =>
      withRetention({ redis, partitions }, endpoints, logger, async (parts) => {
        const abort = new AbortController();
        closers.add('retention', () => abort.abort());
        const plan = await planRetention(parts, lastMonthOlderThan(age, Date.now()));
        const dropped = dryRun ? [] : await retainAnswers(parts, plan, abort.signal);
        stdout.write(`${describe(plan, dropped, dryRun)}\n`);
      }),
    );
  },
});

function describe(
  { months, forecastMonths }: RetentionPlan,
  dropped: readonly number[],
  dryRun: boolean,
): string {
  if (months.length + forecastMonths.length === 0) return 'nothing is old enough';
  const done = (isDropped: boolean): string =>
    dryRun ? 'would be dropped' : isDropped ? 'dropped' : 'has to wait';
  return aligned([
    ...months.map(({ month, answers }) => [`${month}`, `${answers} answers`, done(dropped.includes(month))]),
    ...forecastMonths.map((month) => [`${month}`, 'served forecasts', done(true)]),
  ]);
}
