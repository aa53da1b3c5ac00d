import { createHash } from 'node:crypto';
import { startPipeline } from '../../app/processes/consumers.js';
import { prepareSchema } from '../../app/startup/prepare-schema.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import type { LogProfile } from '../../services/answer-log/profile.js';
import { createImportStore, type ImportStore, importLockKey } from '../../store/learners/import-store.js';
import { openAnswerLog } from '../answer-log/open-log.js';
import { describeReading, logHelp, logOptions, toReadOptions } from '../answer-log/options.js';
import { dryRunFlag, printDryRun, readLog, rejectUnusable } from '../answer-log/read-log.js';
import * as read from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { acquireProcessLock, openEngine } from '../support/servers.js';
import { importRoster } from './import-roster.js';
import { type ImportSummary, runImport } from './run-import.js';

export const importArguments = read.defineArguments({
  usage: 'npm run import -- FILE [options]',
  about: `Imports the answers of FILE. Each answer counts like a live one, in the order of the file for each learner.
With --groups or --oneroster, it imports groups of learners and their names instead.`,
  options: {
    groups: read.option('FILE', 'import groups: CSV with a row per member (docs/import-groups.md)', String),
    oneroster: read.option(
      'FOLDER',
      'import groups: classes.csv, users.csv, enrollments.csv of OneRoster 1.1',
      String,
    ),
    tenant: read.tenantOption(`import into this tenant (default: ${read.defaultTenant})`),
    again: read.flag('import a file again and count all of its rows a second time'),
    'dry-run': dryRunFlag,
    ...logOptions,
    json: read.jsonFlag,
  },
  examples: [
    'npm run import -- answers.csv --tenant school-1',
    'npm run import -- tx.txt --kc Default --dry-run',
    'npm run import -- --groups classes.csv --tenant school-1',
    'npm run import -- grades.csv --columns user_id="Student ID",skill_id=Topic,correct=Score --min-score 0.6',
  ],
  notes: `${logHelp}

If an import is stopped or killed, the same command resumes it and counts no row twice. Invalid rows are written with
line number and reason to a file in DATA_DIR/imports, and the import continues. An answer without ts gets the time of the
import.

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
  read: ({ tenant, again, json, 'dry-run': dryRun, groups, oneroster, ...values }, given) => {
    const shared = { tenant: tenant ?? read.defaultTenant, again, json, dryRun };
    const args = { ...shared, options: toReadOptions(values) };
    const roster = groups ?? oneroster;
    if (roster === null) return { ...read.requireFile(args, given), roster: null };
    if ([again, groups && oneroster, ...given.operands, ...Object.values(values)].some(Boolean))
      throw new read.UsageError('--groups and --oneroster allow only --tenant, --dry-run and --json');
    return { ...args, file: roster, roster: groups === null ? ('oneroster' as const) : ('groups' as const) };
  },
});

type ImportArguments = NonNullable<ReturnType<typeof importArguments.read>>;

export const main = defineCommand({ name: 'import', ...importArguments, run: importFile });

async function importFile(context: CommandContext, args: ImportArguments): Promise<void> {
  const { roster } = args;
  if (roster !== null) return importRoster(context, { ...args, roster });
  if (args.dryRun) return printDryRun(args, context);
  const log = await openAnswerLog(args.file, args.options);
  for (const warning of log.warnings) context.stderr.write(`Warning: ${warning}\n`);
  // Before the first answer counts: a repaired file is another one, so its first rows would count twice.
  const read = await readLog(log, context);
  if (read === null) return;
  rejectUnusable(args.file, read, args.options);
  const { start } = args.options;
  // Rows of other formats may be sorted and merged, so another reading of a file is another import.
  const reading = describeReading(args.options, log.format, log.models);
  const importOptions = `${args.tenant}\n${start ?? ''}${reading}`;
  const contentHash = createHash('sha256').update(read.hash).update(importOptions).digest('hex');
  const started = await startImport(context, args, contentHash);
  const summary = await runImport({ ...started, context, args, log });
  if (summary === null) return;
  const { leftOut, backwards } = read.profile;
  const whole = { ...summary, leftOut, backwards: backwards.order, warnings: read.warnings };
  context.print(args.json ? formatJsonLine(whole) : formatSummary(whole));
}

/**
 * This process also runs the pipeline, so that rows reach ClickHouse without a running service.
 * @throws StartError if the file was imported before, or another process is importing it
 */
async function startImport(context: CommandContext, args: ImportArguments, contentHash: string) {
  const { config, logger, closers } = context;
  const engine = await openEngine(context, config);
  const { redis, endpoints } = engine;
  const store = createImportStore(redis, engine.partitions, contentHash);
  // Concurrent imports count no row twice (feeder.ts), but the first to end would remove the other's marks.
  const inUseMessage = 'Another process is importing this file. Wait until it ends';
  const lock = await acquireProcessLock(redis, importLockKey(contentHash), inUseMessage, context);
  const record = await openImportRecord(store, args);
  await prepareSchema(endpoints, logger, closers);
  startPipeline(engine);
  return { engine, store, lock, record };
}

async function openImportRecord(store: ImportStore, { file, tenant, again }: ImportArguments) {
  const found = await store.find();
  if (found?.finishedAt === null) return found;
  if (found !== null && !again) {
    const before = `${file} was imported into tenant ${tenant} on ${new Date(found.finishedAt).toISOString()}`;
    throw new StartError(`${before}. Pass --again to count all of its rows a second time`);
  }
  return store.start(found);
}

interface WholeFile {
  /** Rows by reason. */
  readonly leftOut: LogProfile['leftOut'];
  /** Rows with a lower `order` than the learner's previous row. */
  readonly backwards: number;
  readonly warnings: readonly string[];
}

function formatSummary({ rows, file, tenant, ...summary }: ImportSummary & WholeFile): string {
  const { counted, skipped, rejected, leftOut, backwards, resumedAfterLine, rejectsFile } = summary;
  return [
    `${formatNumber(rows)} rows of ${file} read for tenant ${tenant}, format ${summary.format}`,
    `  ${formatNumber(counted)} imported in ${summary.seconds.toFixed(1)} s, ${formatNumber(summary.rowsPerSecond)} rows/s`,
    ...(skipped > 0 ? [`  ${formatNumber(skipped)} skipped, imported by an earlier run`] : []),
    ...(resumedAfterLine > 0 ? [`  resumed after line ${formatNumber(resumedAfterLine)}`] : []),
    `  ${formatNumber(rejected)} rejected${rejectsFile === null ? '' : `, listed in ${rejectsFile}`}`,
    ...Object.entries(leftOut).map(([reason, count]) => `    ${formatNumber(count)}: ${reason}`),
    ...(backwards > 0
      ? [`  ${formatNumber(backwards)} with a lower order than the learner's previous row`]
      : []),
    ...summary.warnings.map((warning) => `  Warning: ${warning}`),
    ...summary.notes.map((note) => `  Note: ${note}`),
  ].join('\n');
}
