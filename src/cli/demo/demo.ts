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
  about: `Fills a tenant of its own with a made-up school: 300 learners who answer 600 questions on 40 skills of two sections
for eight months, set goals, and are forecast each week, with fits after half and three quarters of it; and some with names that
show what a page has to show. All of it goes through the engine, week by
week, so that every table and view has what a school would have left there.`,
  options: {
    until: read.option('DATE', 'the last day, YYYY-MM-DD, over by now (default: yesterday)', parseDay),
    tenant: read.tenantOption('the tenant, which must have nothing else (default: demo)'),
    seed: read.integerOption(0, 20_000, 'another number gives another school (default: 1)'),
    learners: read.integerOption(
      1,
      maxLearners,
      `1 to ${maxLearners} beside ${namedLearnerIds.length} with names (default: 300)`,
    ),
    reset: read.flag('remove the demo, also one that was stopped in between'),
    json: read.jsonFlag,
    'no-open': read.flag('open no browser, as in a pipe, with --json, in CI and without a display'),
  },
  notes: `The same day, seed and number of learners give the same answers, and the same figures of them but for times of arrival,
ids of the outbox and learner_version. The dashboard's link has a key of the tenant that works on this machine only and ends
with --reset. It uses the servers of the service that runs on DATA_DIR, or starts its own.`,
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
  throw new read.UsageError(`${name} ${JSON.stringify(text)} must be a day (YYYY-MM-DD) before today`);
}

export const main = defineCommand({ name: 'demo', ...demoArguments, run: runDemoCommand });

async function runDemoCommand(context: CommandContext, args: DemoArguments): Promise<void> {
  const { config, logger, closers } = context;
  const { tenant } = args;
  // One lane and no refresh of items make the figures independent of the machine's speed.
  const settings = { ...config, lanes: 1, itemCacheMs: Number.POSITIVE_INFINITY };
  const engine = await openEngine(context, settings);
  const { redis, endpoints, partitions } = engine;
  const inUseMessage = `The demo of tenant ${tenant} is being made or removed by another process right now`;
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
    throw new StartError(`Tenant ${tenant} has a demo${linkText}, or part of one: --reset removes it`);
  }
  const contentHash = createHash('sha256').update(`demo\n${tenant}`).digest('hex');
  // While an import runs, erasures retain its marks.
  await acquireProcessLock(redis, importLockKey(contentHash), inUseMessage, context);
  const store = createImportStore(redis, partitions, contentHash);
  const { id: importId } = await store.start(await store.find());
  const restartEngine = () => startEngine(redis, endpoints, settings, logger, closers);
  const summary = await runDemo({ context, args, engine, restartEngine, importId });
  if (summary === null) return void context.stderr.write('Stopped; --reset removes what is there\n');
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
  const text = `Tenant ${tenant} has no demo any more: ${erased} learners were erased`;
  context.print(json ? formatJsonLine({ tenant, erased }) : text);
}

function formatSummary({ tenant, ...summary }: NonNullable<Awaited<ReturnType<typeof runDemo>>>): string {
  const { until, seed, seconds, answers, learners, skills, goals, forecasts, modelVersion, fittedUntil } =
    summary;
  return [
    `A school of ${learners} learners until ${until} (seed ${seed}) is in tenant ${tenant}`,
    `  ${formatNumber(answers)} answers on ${skills} skills in ${seconds.toFixed(1)} s`,
    `  ${goals} goals and changes of goals, ${formatNumber(forecasts)} forecasts`,
    modelVersion === 0
      ? '  no model was fitted'
      : `  model version ${modelVersion}, fitted on the answers up to ${fittedUntil.slice(0, 10)}`,
    'While the service runs, ask it by the analyst_url of DATA_DIR/endpoints.json (docs/analytics.md); --reset removes it',
  ].join('\n');
}
