/** Drops old answers now, or tells which ones it would drop. */
import { StartError } from '../lifecycle.js';
import { openRetention } from '../retention.js';
import {
  lastMonthOlderThan,
  planRetention,
  type RetentionPlan,
  retainAnswers,
} from '../services/retain-answers.js';
import { openDeployment, unusableReason } from '../store/deployment.js';
import { holdsState } from '../warehouse/presence.js';
import { type CommandContext, commandOf } from './command.js';
import { type RetainArguments, readRetainArguments, retainHelp, retainUsage } from './retain-options.js';
import { withServers } from './servers.js';
import { aligned } from './text-table.js';

export const main = commandOf({ name: 'retain', help: retainHelp, read: readRetainArguments, work: retain });

async function retain(context: CommandContext, { days, dryRun }: RetainArguments): Promise<void> {
  const { config, logger, closers } = context;
  const age = days ?? config.attemptRetentionDays;
  if (age === 0)
    throw retainUsage('ATTEMPT_RETENTION_DAYS is 0, answers are kept for ever: --days is needed');
  await withServers(context, async ({ endpoints, clickhouse, redis }) => {
    const deployment = await openDeployment(redis, () => holdsState(clickhouse));
    if (deployment.state !== 'ready') throw new StartError(unusableReason(deployment));
    const parts = openRetention({ redis, partitions: deployment.partitions }, endpoints, logger);
    closers.add('ClickHouse connection of retention', () => parts.close());
    const abort = new AbortController();
    closers.add('retention', () => abort.abort());
    const plan = await planRetention(parts, lastMonthOlderThan(age, Date.now()));
    const dropped = dryRun ? [] : await retainAnswers(parts, plan, abort.signal);
    context.stdout.write(`${describe(plan, dropped, dryRun)}\n`);
  });
}

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
