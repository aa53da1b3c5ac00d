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
    about: `Drops stored answers and scored forecasts that are old, whole months of arrival, as the service does by itself with
ATTEMPT_RETENTION_DAYS. Their daily sums and what learners know stay. There is no way back but a backup.`,
    options: {
      'dry-run': flag('say what would be dropped, drop nothing'),
      days: integerOption(1, 36_500, 'age in days, 1 to 36500 (default: ATTEMPT_RETENTION_DAYS)'),
    },
    notes: `A month whose answers may still be on their way has to wait; the log says for what.
It uses the servers of the service that runs on DATA_DIR, or starts its own.`,
    read: rejectOperands,
  }),
  run: async (context, { days, 'dry-run': dryRun }) => {
    const age = days ?? context.config.attemptRetentionDays;
    if (age === 0)
      throw new StartError('ATTEMPT_RETENTION_DAYS is 0, answers are kept for ever: --days is needed');
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
  if (months.length + forecastMonths.length === 0) return 'nothing is old enough';
  const formatState = (isDropped: boolean): string =>
    dryRun ? 'would be dropped' : isDropped ? 'dropped' : 'has to wait';
  return formatTable([
    ...months.map(({ month, answers }) => [
      `${month}`,
      `${answers} answers`,
      formatState(dropped.includes(month)),
    ]),
    ...forecastMonths.map((month) => [`${month}`, 'served forecasts', formatState(true)]),
  ]);
}
