import { createFitDependencies } from '../../app/processes/consumers.js';
import type { AccuracyReport } from '../../domain/fit/accuracy/fit-accuracy.js';
import type { LossComparison } from '../../domain/fit/bkt/trace-log.js';
import type { FitReport } from '../../domain/fit/fit-tenant.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { buildPartRows, partHead } from '../../lab/report/model-parts.js';
import { textTable } from '../../lab/report/page.js';
import { StartError } from '../../lifecycle.js';
import { type FitDependencies, runFits, type TenantFit } from '../../services/models/fit-models.js';
import { activateVersion } from '../../services/models/model-versions.js';
import type { RetainedVersion } from '../../store/models/model-store.js';
import * as read from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { withDeployment } from '../support/servers.js';

export const main = defineCommand({
  name: 'fit',
  ...read.defineArguments({
    usage: 'npm run fit [-- options]',
    about: `Fits the models on all answers in ClickHouse, tenant by tenant, and publishes what predicts the answers of
learners that it did not see no worse than what is in force. Running services take a new version within
seconds. A tenant without new answers since its last fit is skipped; answers that still wait for ClickHouse
are not in the fit.`,
    options: {
      tenant: read.tenantOption('only this tenant (default: all with answers)'),
      'dry-run': read.flag('fit and judge, publish nothing'),
      threads: read.integerOption(1, 64, 'worker threads, 1 to 64 (default: one for each core)'),
      list: read.flag("the tenant's versions, without fitting"),
      back: read.flag('go back to the version before the one in force'),
      use: read.integerOption(0, 2 ** 32 - 1, 'use version N again; 0 is the state before the first fit'),
      json: read.jsonFlag,
    },
    notes: `--list, --back and --use mean tenant "default" unless --tenant names another. The last 10 versions can be
used again; those whose items were forgotten (all but the last 3) learn the difficulty of items anew.
The next fit that sees new answers may publish a newer version: FIT_INTERVAL_HOURS=0 stops the scheduled ones.
It uses the servers of the service that runs on DATA_DIR, or starts its own.`,
    read: (values, given) => {
      const { 'dry-run': dryRun, list, back, use, ...others } = read.rejectOperands(values, given);
      if ([dryRun, list, back, use !== null].filter(Boolean).length > 1)
        throw new read.UsageError('--dry-run, --list, --back and --use exclude one another');
      return { ...others, dryRun, list, back, use };
    },
  }),
  run: (context, { tenant, dryRun, threads, list, back, use, json }) =>
    withDeployment(context, async ({ endpoints, clickhouse, redis, signal }) => {
      const options = { threads: threads ?? undefined, servesRequests: false };
      const parts = createFitDependencies({ redis, clickhouse }, endpoints, options, context.logger);
      if (list || back || use !== null) {
        const named = tenant ?? read.defaultTenant;
        if (!list) await changeVersion(parts, named, use);
        const inForce = await parts.models.fetchActiveVersion(named);
        const versions = await parts.models.listVersions(named);
        const kept = versions.map(({ version, basedOn, publishedAt }) => ({
          ...{ version, basedOn, publishedAt: new Date(publishedAt).toISOString() },
        }));
        const text = formatVersions(named, versions);
        return context.print(json ? formatJsonLine({ tenant: named, inForce, versions: kept }) : text);
      }
      const onStep = (of: string, step: string): void => context.showProgress(`${of}: ${step}`);
      const fits = await runFits(parts, { tenant: tenant ?? undefined, dryRun, signal, onStep });
      const text = fits.map(formatFit).join('\n') || 'There are no answers to fit on';
      context.print(json ? formatJsonLine({ tenants: fits.map(describeFit) }) : text);
    }),
});

/**
 * @param requested null: the previous version
 * @throws StartError
 */
async function changeVersion(
  parts: FitDependencies,
  tenant: string,
  requested: number | null,
): Promise<void> {
  const inForce = await parts.models.fetchActiveVersion(tenant);
  const current = (await parts.models.listVersions(tenant)).find(({ version }) => version === inForce);
  const version = requested ?? current?.basedOn;
  if (version === undefined) throw new StartError(`Tenant ${tenant} has no version before ${inForce}`);
  const outcome = await activateVersion(parts, tenant, version, inForce);
  if (outcome === 'in-force')
    throw new StartError(`Version ${version} of tenant ${tenant} is in force already`);
  if (outcome === 'not-kept')
    throw new StartError(`Version ${version} of tenant ${tenant} is not kept; --list shows those that are`);
  if (outcome === 'superseded')
    throw new StartError(`Another version of tenant ${tenant} came into force meanwhile; try again`);
}

function formatVersions(tenant: string, versions: readonly RetainedVersion[]): string {
  if (versions.length === 0) return `Tenant ${tenant} has no fitted version`;
  const lines = versions.map(
    ({ version, basedOn, publishedAt, inForce }) =>
      `  ${inForce ? '*' : ' '} ${version}  ${new Date(publishedAt).toISOString()}  after ${basedOn}`,
  );
  const none = versions.some(({ inForce }) => inForce) ? '' : '  * 0  before the first fit\n';
  return `Versions of tenant ${tenant}, * in force:\n${none}${lines.join('\n')}`;
}

const outcomeTexts: Readonly<Record<TenantFit['outcome'], string>> = {
  published: 'published',
  not_better: 'nothing better than what is in force',
  nothing_new: 'no new answers since the last fit',
  too_few: 'too few learners to fit on',
  superseded: 'another version came first',
  dry_run: 'would be published',
};

const countPublished = ({ skills }: FitReport): number => skills.filter(({ published }) => published).length;

const maxShownSkills = 10;

function formatFit({ tenant, outcome, version, report }: TenantFit): string {
  const lines = [`Tenant ${tenant}: ${outcomeTexts[outcome]}, version ${version} is in force`];
  if (report === null) return lines.join('\n');
  const sample = report.sampledOneIn === 1 ? '' : `, one learner in ${report.sampledOneIn}`;
  lines.push(
    `  ${formatNumber(report.answers)} answers of ${formatNumber(report.learners)} learners${sample} in ${report.seconds.toFixed(1)} s`,
    `  ${countPublished(report)} of ${report.skills.length} skills published, the others held back or kept`,
    `  log loss of BKT on held-out learners ${formatComparison(report.bkt)}`,
    `  log loss of the served probability ${formatComparison(report.served)}`,
    '  its parts, by cross-fit on the training learners:',
    textTable(partHead, buildPartRows(report.served.parts)),
    `  forecasts of shares ${formatAccuracy(report.accuracy)}`,
  );
  const worse = report.skills.filter(({ reason }) => reason.startsWith('held-out'));
  for (const { skillId, reason } of worse.slice(0, maxShownSkills)) lines.push(`    ${skillId}: ${reason}`);
  if (worse.length > maxShownSkills) lines.push(`    and ${worse.length - maxShownSkills} more`);
  return lines.join('\n');
}

const formatComparison = ({ answers, oldLogLoss, newLogLoss }: LossComparison): string =>
  oldLogLoss === null || newLogLoss === null
    ? 'not measured: no answers'
    : `${oldLogLoss.toFixed(4)} before, ${newLogLoss.toFixed(4)} now (${formatNumber(answers)} answers)`;

function formatAccuracy({ cases, published, reason, ...figures }: AccuracyReport): string {
  const outcome = published ? 'published' : `kept as they were: ${reason}`;
  const { oldLogLoss, newLogLoss, oldCoverage80, newCoverage80 } = figures;
  if (newLogLoss === null || newCoverage80 === null) return outcome;
  const before = (value: number | null): string => (value === null ? '' : `${value.toFixed(4)} before, `);
  return [
    outcome,
    `log loss ${before(oldLogLoss)}${newLogLoss.toFixed(4)} now`,
    `coverage of the 80 % interval ${before(oldCoverage80)}${newCoverage80.toFixed(4)} now (${formatNumber(cases)} forecasts)`,
  ].join('; ');
}

function describeFit({ report, ...fit }: TenantFit) {
  if (report === null) return { ...fit, report };
  const { served, skills, ...others } = report;
  const { reason: _, ...compared } = served;
  const skillsPublished = countPublished(report);
  return { ...fit, report: { ...others, skills: skills.length, skillsPublished, served: compared } };
}
