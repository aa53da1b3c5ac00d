import { isDeepStrictEqual } from 'node:util';
import { createFitDependencies } from '../../app/processes/consumers.js';
import type { AccuracyReport } from '../../domain/fit/accuracy/fit-accuracy.js';
import type { LossComparison } from '../../domain/fit/bkt/trace-log.js';
import type { FitReport } from '../../domain/fit/fit-tenant.js';
import { splitInSample } from '../../lab/evaluate/answers.js';
import { formatFigure } from '../../lab/evaluate/figures.js';
import { measureFold } from '../../lab/evaluate/folds.js';
import { scoreSplit } from '../../lab/evaluate/scores.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { buildPartRows, partHead } from '../../lab/report/model-parts.js';
import { textTable } from '../../lab/report/page.js';
import { StartError } from '../../lifecycle.js';
import { defaultReadOptions, type ReadOptions } from '../../services/answer-log/options.js';
import { type FitDependencies, runFits, type TenantFit } from '../../services/models/fit-models.js';
import { activateVersion } from '../../services/models/model-versions.js';
import type { RetainedVersion } from '../../store/models/model-store.js';
import { logHelp, logOptions, toReadOptions } from '../answer-log/options.js';
import * as read from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { withDeployment } from '../support/servers.js';
import { type LabArguments, openTrainer, readAnswers } from './lab-command.js';
import { checkOutputs, type TablePaths, tableOptions, writeTables } from './output-files.js';

export const main = defineCommand({
  name: 'fit',
  ...read.defineArguments({
    usage: 'npm run fit [-- FILE] [options]',
    about: `Fits the models of each tenant on all of its answers in ClickHouse, and publishes a new version if it predicts
held-out learners at least as well as the active version. With FILE, it fits the models on all answers of FILE without
servers and publishes nothing.`,
    options: {
      tenant: read.tenantOption('only this tenant (default: all tenants with answers)'),
      'dry-run': read.flag('fit and evaluate, but publish nothing'),
      threads: read.integerOption(
        1,
        64,
        'worker threads, 1 to 64 (default: one per core; for a FILE below 1,000,000 answers, 1)',
      ),
      list: read.flag("print the tenant's versions and fit nothing"),
      back: read.flag('activate the version before the active one'),
      use: read.integerOption(0, 2 ** 32 - 1, 'activate version N; 0 is the state before the first fit'),
      ...tableOptions,
      json: read.jsonFlag,
      ...logOptions,
    },
    examples: [
      'npm run fit',
      'npm run fit -- --tenant school-1 --dry-run',
      'npm run fit -- --tenant school-1 --list',
      'npm run fit -- --tenant school-1 --use 3',
      'npm run fit -- answers.csv --parameters skills.csv',
    ],
    notes: `Running services load a new version within seconds. A tenant without new answers since its last fit is skipped.
Answers that are still in the outbox are not part of the fit.

--list, --back and --use apply to tenant "default" unless --tenant names another tenant. The last 10 versions can be
activated. Item difficulties are stored for the last 3; older versions learn them from scratch.
The next fit with new answers may publish a newer version. Set FIT_INTERVAL_HOURS=0 to disable scheduled fits.

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.

${logHelp}
docs/load-results.md describes the columns of --predictions and --parameters. Their figures are in-sample: the models are
fitted on the same answers.`,
    read: ({ 'dry-run': dryRun, ...values }, given) => {
      const { file } = given.operands.length > 0 ? read.requireFile({}, given) : { file: null };
      const args = { ...values, dryRun, options: toReadOptions(values), file };
      const modes = [dryRun, args.list, args.back, args.use !== null].filter(Boolean).length;
      if (file === null) checkDeploymentFit(args, modes);
      else checkFileFit(file, args, modes);
      return args;
    },
  }),
  run: (context, args) => {
    const { file, tenant, dryRun, threads, list, back, use, json } = args;
    if (file !== null) return fitFile(context, { ...args, file });
    return withDeployment(context, async ({ endpoints, clickhouse, redis, signal }) => {
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
      const text = fits.map(formatFit).join('\n') || 'ClickHouse has no answers to fit the models on';
      context.print(json ? formatJsonLine({ tenants: fits.map(describeFit) }) : text);
    });
  },
});

interface FitArguments extends TablePaths {
  readonly tenant: string | null;
  readonly options: ReadOptions;
}

/** @param modes options that exclude each other @throws UsageError */
function checkDeploymentFit({ predictions, parameters, options }: FitArguments, modes: number): void {
  if (modes > 1) throw new read.UsageError('Pass only one of --dry-run, --list, --back and --use');
  if ((predictions ?? parameters) !== null)
    throw new read.UsageError(
      '--predictions and --parameters need a file of answers. Use npm run fit -- FILE --predictions OUT',
    );
  if (!isDeepStrictEqual(options, defaultReadOptions))
    throw new read.UsageError('Options that say how to read FILE need a FILE');
}

/** @throws UsageError */
function checkFileFit(file: string, args: FitArguments, modes: number): void {
  checkOutputs(file, args);
  if (modes > 0 || args.tenant !== null)
    throw new read.UsageError(
      'A fit of FILE publishes nothing. Omit FILE, or omit --tenant, --dry-run, --list, --back and --use',
    );
}

/** Fits the models on all answers of a file. Publishes nothing and needs no servers. */
async function fitFile(context: CommandContext, args: LabArguments & TablePaths): Promise<void> {
  const answers = await readAnswers(args, context);
  if (answers === null) return;
  const { table, leftOut, since } = answers;
  const split = splitInSample(table);
  const trained = await openTrainer(context, args, table)(split.training);
  if (trained === null) return;
  const scored = scoreSplit(split, trained.models);
  const seconds = (performance.now() - since) / 1000;
  const { rows, learners, models: inSample } = measureFold(scored);
  const found = { answers: rows, learners, skills: table.skills.length, leftOut, seconds, inSample };
  const describe = ({ auc, logLoss }: typeof inSample.bkt): string =>
    `AUC ${formatFigure(auc)}, log loss ${formatFigure(logLoss)}`;
  const text = `Fitted ${formatNumber(found.skills)} skills on ${formatNumber(rows)} answers of ${formatNumber(learners)} learners in ${seconds.toFixed(1)} s. Published nothing.
In-sample predictions of the served model: ${describe(inSample.served)}; of plain BKT: ${describe(inSample.bkt)}.
npm run evaluate measures the predictions of learners that the fit did not use.`;
  context.print(args.json ? formatJsonLine(found, 6) : text);
  await writeTables(context, args, table, [scored]);
}

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
  if (version === undefined)
    throw new StartError(`Tenant ${tenant} has no version before version ${inForce}`);
  const outcome = await activateVersion(parts, tenant, version, inForce);
  if (outcome === 'in-force')
    throw new StartError(`Version ${version} of tenant ${tenant} is already active`);
  if (outcome === 'not-kept')
    throw new StartError(
      `Version ${version} of tenant ${tenant} is not stored. --list shows the stored versions`,
    );
  if (outcome === 'superseded')
    throw new StartError(`Another process activated a version of tenant ${tenant}. Run the command again`);
}

function formatVersions(tenant: string, versions: readonly RetainedVersion[]): string {
  if (versions.length === 0) return `Tenant ${tenant} has no fitted version`;
  const lines = versions.map(
    ({ version, basedOn, publishedAt, inForce }) =>
      `  ${inForce ? '*' : ' '} ${version}  ${new Date(publishedAt).toISOString()}  based on ${basedOn}`,
  );
  const none = versions.some(({ inForce }) => inForce) ? '' : '  * 0  before the first fit\n';
  return `Versions of tenant ${tenant} (* = active):\n${none}${lines.join('\n')}`;
}

const outcomeTexts: Readonly<Record<TenantFit['outcome'], string>> = {
  published: 'published',
  not_better: 'not published, because it is not better than the active version',
  nothing_new: 'skipped, no new answers since the last fit',
  too_few: 'skipped, too few learners',
  superseded: 'not published, because another process published a version first',
  dry_run: 'would be published',
};

const countPublished = ({ skills }: FitReport): number => skills.filter(({ published }) => published).length;

const maxShownSkills = 10;

function formatFit({ tenant, outcome, version, report }: TenantFit): string {
  const lines = [`Tenant ${tenant}: ${outcomeTexts[outcome]}; active version: ${version}`];
  if (report === null) return lines.join('\n');
  const sample = report.sampledOneIn === 1 ? '' : ` (1 in ${report.sampledOneIn} learners sampled)`;
  lines.push(
    `  ${formatNumber(report.answers)} answers of ${formatNumber(report.learners)} learners${sample} in ${report.seconds.toFixed(1)} s`,
    `  ${countPublished(report)} of ${report.skills.length} skills got new parameters; the others keep their previous parameters`,
    `  log loss of BKT on held-out learners: ${formatComparison(report.bkt)}`,
    `  log loss of the served probability: ${formatComparison(report.served)}`,
    '  parts of the served model, by cross-fit on the training learners:',
    textTable(partHead, buildPartRows(report.served.parts)),
    `  forecasts of the share of correct answers: ${formatAccuracy(report.accuracy)}`,
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
  const outcome = published ? 'published' : `unchanged, ${reason}`;
  const { oldLogLoss, newLogLoss, oldCoverage80, newCoverage80 } = figures;
  if (newLogLoss === null || newCoverage80 === null) return outcome;
  const before = (value: number | null): string => (value === null ? '' : `${value.toFixed(4)} before, `);
  return [
    outcome,
    `log loss: ${before(oldLogLoss)}${newLogLoss.toFixed(4)} now`,
    `coverage of the 80 % interval: ${before(oldCoverage80)}${newCoverage80.toFixed(4)} now (${formatNumber(cases)} forecasts)`,
  ].join('; ');
}

function describeFit({ report, ...fit }: TenantFit) {
  if (report === null) return { ...fit, report };
  const { served, skills, ...others } = report;
  const { reason: _, ...compared } = served;
  const skillsPublished = countPublished(report);
  return { ...fit, report: { ...others, skills: skills.length, skillsPublished, served: compared } };
}
