import { startPipeline } from '../../app/processes/consumers.js';
import { prepareSchema } from '../../app/startup/prepare-schema.js';
import { findTimeProblem } from '../../contracts/answers/events.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { createImportStore, type ImportStore, importLockKey } from '../../store/learners/import-store.js';
import * as read from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { acquireProcessLock, openEngine } from '../support/servers.js';
import { openAnswerFile, validateContent } from './answer-file.js';
import { type ImportSummary, runImport } from './run-import.js';

export const importArguments = read.defineArguments({
  usage: 'npm run import -- FILE [options]',
  about: `Imports the answers of FILE. Each answer counts like a live one, in the order of the file for each learner.`,
  options: {
    tenant: read.tenantOption(`import into this tenant (default: ${read.defaultTenant})`),
    start: read.timeOption(
      'DATE',
      'a numeric ts counts seconds from this time, YYYY-MM-DD or RFC 3339 (default: 1970-01-01)',
      (ms) => findTimeProblem(ms, Date.now()),
    ),
    again: read.flag('import a file again and count all of its rows a second time'),
    json: read.jsonFlag,
  },
  examples: [
    'npm run import -- answers.csv --tenant school-1',
    'npm run import -- answers.ndjson.gz --start 2026-01-01',
  ],
  notes: `FILE is CSV with a header, or NDJSON; both may be gzipped. The content determines the format, not the name.
Required columns: user_id, correct, and skill_id or skill_ids. Optional columns, which may be empty in a row: item_id,
order, ts, response_time_s. Other columns are ignored.
  skill_id         one id, or several joined with ~~ if the question needs several skills
  skill_ids        instead of skill_id: a JSON list of ids, at most 10
  correct          1, 0, true or false
  ts               RFC 3339 or Unix seconds (default: the time of the import)
  order            only checked; the summary counts rows with a lower order than the learner's previous row
  response_time_s  0 to 86400, with decimals

If an import is stopped or killed, the same command resumes it and counts no row twice. Invalid rows are written with
line number and reason to a file in DATA_DIR/imports, and the import continues.

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
  read: ({ tenant, start, ...values }, given) =>
    read.requireFile({ ...values, tenant: tenant ?? read.defaultTenant, startMs: start }, given),
});

type ImportArguments = NonNullable<ReturnType<typeof importArguments.read>>;

export const main = defineCommand({ name: 'import', ...importArguments, run: importFile });

async function importFile(context: CommandContext, args: ImportArguments): Promise<void> {
  const file = openAnswerFile(args.file);
  const contentHash = await validateContent(file, `${args.tenant}\n${args.startMs ?? ''}`, context);
  if (context.closers.closing) return;
  const started = await startImport(context, args, contentHash);
  const summary = await runImport({ ...started, context, args, file });
  if (summary !== null) context.print((args.json ? formatJsonLine : formatSummary)(summary));
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

function formatSummary({ rows, file, tenant, ...summary }: ImportSummary): string {
  const { counted, skipped, rejected, backwards, resumedAfterLine, rejectsFile } = summary;
  return [
    `${formatNumber(rows)} rows of ${file} read for tenant ${tenant}`,
    `  ${formatNumber(counted)} imported in ${summary.seconds.toFixed(1)} s, ${formatNumber(summary.rowsPerSecond)} rows/s`,
    ...(skipped > 0 ? [`  ${formatNumber(skipped)} skipped, imported by an earlier run`] : []),
    ...(resumedAfterLine > 0 ? [`  resumed after line ${formatNumber(resumedAfterLine)}`] : []),
    `  ${formatNumber(rejected)} rejected${rejectsFile === null ? '' : `, listed in ${rejectsFile}`}`,
    ...(backwards > 0
      ? [`  ${formatNumber(backwards)} with a lower order than the learner's previous row`]
      : []),
    ...summary.notes.map((note) => `  Note: ${note}`),
  ].join('\n');
}
