import { withMaintenance } from '../../app/operations/maintenance.js';
import { formatTable } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import {
  applyRetention,
  findLastOldMonth,
  planRetention,
  type RetentionPlan,
} from '../../services/retention/apply-retention.js';
import { defineArguments, flag, integerOption, rejectOperands } from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { withDeployment } from '../support/servers.js';

export const main = defineCommand({
  name: 'retain',
  ...defineArguments({
    usage: 'npm run retain [-- options]',
    about: `Deletes old answers by month of arrival, and served forecasts by month of creation. Daily sums and the state of
learners remain. Only a backup can restore deleted answers.`,
    options: {
      'dry-run': flag('print what would be deleted, and delete nothing'),
      days: integerOption(1, 36_500, 'minimum age in days, 1 to 36500 (default: ATTEMPT_RETENTION_DAYS)'),
    },
    examples: ['npm run retain -- --dry-run', 'npm run retain -- --days 400'],
    notes: `The service does the same automatically if ATTEMPT_RETENTION_DAYS is set. A month is postponed while its answers may
still be in the outbox; the log states the reason.

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
    read: rejectOperands,
  }),
  run: async (context, { days, 'dry-run': dryRun }) => {
    const age = days ?? context.config.attemptRetentionDays;
    if (age === 0)
      throw new StartError(
        'ATTEMPT_RETENTION_DAYS is 0 (keep forever). Pass --days N to delete older answers',
      );
    await withDeployment(context, ({ endpoints, redis, signal }, partitions) =>
      withMaintenance({ redis, partitions }, endpoints, context.logger, async (parts) => {
        const plan = await planRetention(parts, findLastOldMonth(age, Date.now()));
        const dropped = dryRun ? [] : await applyRetention(parts, plan, signal);
        context.print(formatRetention(plan, dropped, dryRun));
      }),
    );
  },
});

function formatRetention(
  { months, forecastMonths }: RetentionPlan,
  dropped: readonly number[],
  dryRun: boolean,
): string {
  if (months.length + forecastMonths.length === 0) return 'Nothing to delete';
  const formatState = (isDropped: boolean): string =>
    dryRun ? 'would be deleted' : isDropped ? 'deleted' : 'postponed';
  return formatTable([
    ...months.map(({ month, answers }) => [
      `${month}`,
      `${answers} answers`,
      formatState(dropped.includes(month)),
    ]),
    ...forecastMonths.map((month) => [`${month}`, 'served forecasts', formatState(true)]),
  ]);
}
