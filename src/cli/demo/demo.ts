import { createHash } from 'node:crypto';
import { startJournal, startPipeline } from '../../app/processes/consumers.js';
import { type Engine, startEngine } from '../../app/startup/engine.js';
import { removeDemoKey } from '../../app/startup/prepare-keys.js';
import { prepareSchema } from '../../app/startup/prepare-schema.js';
import { parseTime } from '../../contracts/answers/events.js';
import { dayMs, formatDate } from '../../domain/base/common.js';
import { maxLearners, namedLearnerIds } from '../../lab/demo/school.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { createImportStore, importLockKey } from '../../store/learners/import-store.js';
import { demoLockKey } from '../../store/redis/keys.js';
import * as read from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { acquireProcessLock, openEngine } from '../support/servers.js';
import { findDashboard, formatDashboard, openDashboard } from './demo-dashboard.js';
import { runDemo } from './demo-run.js';
import { hasDemo, removeDemo } from './remove-demo.js';

const demoArguments = read.defineArguments({
  usage: 'npm run demo [-- options]',
  about: `Fills a tenant with a generated school: eight months of answers on 40 skills, with classes, names, goals, weekly
forecasts and two fits. All data passes through the engine, like the data of a live tenant.`,
  options: {
    until: read.option(
      'DATE',
      'last day of the data, YYYY-MM-DD, before today (default: yesterday)',
      parseDay,
    ),
    tenant: read.tenantOption('tenant to fill; must be empty (default: demo)'),
    seed: read.integerOption(0, 20_000, 'random seed, 0 to 20000 (default: 1)'),
    learners: read.integerOption(
      1,
      maxLearners,
      `generated learners, 1 to ${maxLearners}, plus ${namedLearnerIds.length} fixed examples (default: 300)`,
    ),
    reset: read.flag('remove the demo, or the part of it that a stopped run left'),
    json: read.jsonFlag,
    'no-open': read.flag('do not open a browser; implied by --json, a pipe, CI, SSH, or a missing display'),
  },
  examples: ['npm run demo', 'npm run demo -- --until 2026-06-30', 'npm run demo -- --reset'],
  notes: `The same --until, --seed and --learners produce the same rows, except received_at, outbox ids, learner_version, and
the times of profiles.

The command prints a dashboard link. Its key belongs to the tenant, works only on this machine, and is revoked by --reset.

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
  read: (values, given) => {
    const {
      until,
      tenant,
      seed,
      learners,
      'no-open': noOpen,
      ...others
    } = read.rejectOperands(values, given);
    const yesterday = formatDate(Date.now() - dayMs);
    const options = { until: until ?? yesterday, seed: seed ?? 1, learners: learners ?? 300 };
    return { ...others, ...options, noOpen, tenant: tenant ?? 'demo' };
  },
});

type DemoArguments = NonNullable<ReturnType<typeof demoArguments.read>>;

function parseDay(text: string, name: string): string {
  const ms = parseTime(`${text}T00:00:00Z`);
  if (ms !== null && ms >= Date.UTC(1971) && ms + dayMs <= Date.now()) return text;
  throw new read.UsageError(`${name} ${JSON.stringify(text)} must be a date (YYYY-MM-DD) before today`);
}

export const main = defineCommand({ name: 'demo', ...demoArguments, run: runDemoCommand });

async function runDemoCommand(context: CommandContext, args: DemoArguments): Promise<void> {
  const { config, logger, closers } = context;
  const { tenant } = args;
  // One lane and no refresh of items make the figures independent of the machine's speed.
  const settings = { ...config, lanes: 1, itemCacheMs: Number.POSITIVE_INFINITY };
  const engine = await openEngine(context, settings);
  const { redis, endpoints, partitions } = engine;
  const inUseMessage = `Another process is creating or removing the demo of tenant ${tenant}. Wait until it ends`;
  await acquireProcessLock(redis, demoLockKey(tenant), inUseMessage, context);
  await prepareSchema(endpoints, logger, closers);
  startPipeline(engine);
  startJournal(engine);
  const hasDemoData = await hasDemo(engine, tenant);
  if (args.reset) return resetDemo(context, args, engine, hasDemoData);
  const dashboard = () => findDashboard(context, redis, tenant);
  if (hasDemoData) {
    const { link } = await dashboard();
    const linkText = link === null ? '' : ` (${link})`;
    throw new StartError(
      `Tenant ${tenant} already has a demo, or a part of one${linkText}. Run the command with --reset to remove it`,
    );
  }
  const contentHash = createHash('sha256').update(`demo\n${tenant}`).digest('hex');
  // While an import runs, erasures retain its marks.
  await acquireProcessLock(redis, importLockKey(contentHash), inUseMessage, context);
  const store = createImportStore(redis, partitions, contentHash);
  const { id: importId } = await store.start(await store.find());
  const restartEngine = () => startEngine(redis, endpoints, settings, logger, closers);
  const summary = await runDemo({ context, args, engine, restartEngine, importId });
  if (summary === null)
    return void context.stderr.write('Stopped; run the command with --reset to remove the incomplete demo\n');
  await store.finish(importId, summary.answers, Date.now());
  const shown = await dashboard();
  if (args.json) return context.print(formatJsonLine({ ...summary, dashboard: shown.link }));
  context.print(`${formatSummary(summary)}\n${formatDashboard(shown)}`);
  if (!args.noOpen) await openDashboard(context, shown);
}

async function resetDemo(context: CommandContext, args: DemoArguments, engine: Engine, hasDemoData: boolean) {
  const { tenant, json } = args;
  const erased = hasDemoData ? await removeDemo(context, engine, tenant) : 0;
  if (erased === null) return;
  await removeDemoKey(context.config, engine.redis, tenant);
  const text = `Demo of tenant ${tenant} removed: ${erased} learners erased`;
  context.print(json ? formatJsonLine({ tenant, erased }) : text);
}

function formatSummary({ tenant, ...summary }: NonNullable<Awaited<ReturnType<typeof runDemo>>>): string {
  const { until, seed, seconds, answers, learners, groups, skills, goals, forecasts } = summary;
  const { modelVersion, fittedUntil } = summary;
  return [
    `Tenant ${tenant} has a demo school of ${learners} learners until ${until} (seed ${seed})`,
    `  ${formatNumber(answers)} answers on ${skills} skills in ${seconds.toFixed(1)} s`,
    `  ${groups} groups, ${goals} goal changes, ${formatNumber(forecasts)} forecasts`,
    modelVersion === 0
      ? '  no model version published'
      : `  model version ${modelVersion}, fitted on the answers until ${fittedUntil.slice(0, 10)}`,
    'To query the data, use analyst_url of DATA_DIR/endpoints.json while the service runs (docs/analytics/README.md)',
    'To remove the demo, run the command with --reset',
  ].join('\n');
}
