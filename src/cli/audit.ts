/** Compares what was accepted with what is stored, and the rollups with the table. */
import { openAudit } from '../audit.js';
import { StartError } from '../lifecycle.js';
import { runAudit } from '../services/audit/audit.js';
import type { AuditReport } from '../services/audit/report.js';
import { openDeployment, unusableReason } from '../store/deployment.js';
import { holdsState } from '../warehouse/presence.js';
import { type AuditArguments, auditHelp, readAuditArguments } from './audit-options.js';
import { auditJson, auditText } from './audit-report.js';
import { type CommandContext, commandOf } from './command.js';
import { createProgress } from './import-report.js';
import { withServers } from './servers.js';

const exitCodes = { agrees: 0, mismatch: 1, notCompared: 2 } as const;

export const main = commandOf({
  name: 'audit',
  help: auditHelp,
  read: readAuditArguments,
  work: compare,
  failure: exitCodes.notCompared,
});

async function compare(context: CommandContext, args: AuditArguments): Promise<void> {
  const report = await reportOf(context, args);
  context.stdout.write(`${args.json ? auditJson(report) : auditText(report)}\n`);
  context.endWith(exitCodeOf(report));
}

function exitCodeOf({ mismatches, notCompared }: AuditReport): number {
  if (mismatches.length > 0) return exitCodes.mismatch;
  return notCompared.length > 0 ? exitCodes.notCompared : exitCodes.agrees;
}

const reportOf = (context: CommandContext, { days }: AuditArguments): Promise<AuditReport> =>
  withServers(context, async ({ endpoints, clickhouse, redis }) => {
    const deployment = await openDeployment(redis, () => holdsState(clickhouse));
    if (deployment.state !== 'ready') throw new StartError(unusableReason(deployment));
    const audit = openAudit({ redis, partitions: deployment.partitions }, endpoints);
    context.closers.add('ClickHouse connection of the audit', () => audit.close());
    return run(context, audit, days);
  });

async function run(
  context: CommandContext,
  audit: ReturnType<typeof openAudit>,
  days: number | null,
): Promise<AuditReport> {
  const abort = new AbortController();
  context.closers.add('audit', () => abort.abort());
  const progress = createProgress(context);
  const report = await runAudit(audit, { days, signal: abort.signal, onStep: progress.show });
  progress.show('');
  return report;
}
