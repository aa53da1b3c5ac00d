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
  about: `Counts every answer of FILE as if it had just come in, in the order of the file, learner by learner.

FILE is CSV with a header, or NDJSON, both also as gzip; which of them shows in its first bytes, whatever
its name. Columns: user_id, skill_id, correct, and optionally item_id, order, ts, response_time_s, each of
which may be empty in a row; others are ignored.
  correct          1, 0, true or false
  ts               RFC 3339, or Unix seconds; a row without it has the time of the import
  order            only checked: the summary says how many rows go backwards within their learner
  response_time_s  0 to 86400, fractions allowed`,
  options: {
    tenant: read.tenantOption(`whose answers these are (default: ${read.defaultTenant})`),
    start: read.timeOption(
      'DATE',
      'YYYY-MM-DD or RFC 3339: a numeric ts is the number of seconds since then',
      (ms) => findTimeProblem(ms, Date.now()),
    ),
    again: read.flag('import a file that was imported before once more, counting every row again'),
    json: read.jsonFlag,
  },
  notes: `An import that was stopped or killed goes on where it was when the same command is given again, and counts
no row twice. Rows that do not fit go with line number and reason to a file under DATA_DIR/imports; the
import goes on. It uses the servers of the service that runs on DATA_DIR, or starts its own.`,
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
  const inUseMessage = 'This file is being imported by another process right now';
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
    const before = `${file} was imported for tenant ${tenant} before (${new Date(found.finishedAt).toISOString()})`;
    throw new StartError(`${before}; --again counts all its rows once more`);
  }
  return store.start(found);
}

function formatSummary({ rows, file, tenant, ...summary }: ImportSummary): string {
  const { counted, skipped, rejected, backwards, resumedAfterLine, rejectsFile } = summary;
  return [
    `${formatNumber(rows)} rows of ${file} for tenant ${tenant}`,
    `  ${formatNumber(counted)} counted in ${summary.seconds.toFixed(1)} s, ${formatNumber(summary.rowsPerSecond)} a second`,
    ...(skipped > 0 ? [`  ${formatNumber(skipped)} skipped, counted before`] : []),
    ...(resumedAfterLine > 0 ? [`  resumed after line ${formatNumber(resumedAfterLine)}`] : []),
    `  ${formatNumber(rejected)} rejected${rejectsFile === null ? '' : `, see ${rejectsFile}`}`,
    ...(backwards > 0
      ? [`  ${formatNumber(backwards)} with an order below that of the learner's row before`]
      : []),
    ...summary.notes.map((note) => `  Note: ${note}`),
  ].join('\n');
}
