import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { computeSum } from '../../lists.js';
import { createOutbox } from '../../store/outbox/outbox.js';
import type { RedisClient } from '../../store/redis/connection/client.js';
import { defaultPartitions, readDeployment } from '../../store/redis/server/deployment.js';
import {
  createTenantReader,
  exportFormats,
  maxPartRows,
  type TenantReader,
  type TenantTable,
  tenantTables,
} from '../../warehouse/reads/tenant-tables.js';
import * as read from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { type Servers, updateSchema, withServers } from '../support/servers.js';
import {
  type ExportSpec,
  type Manifest,
  nextPartName,
  openExportFolder,
  writeAtomically,
  writeManifest,
} from './export-folder.js';

const formats = Object.keys(exportFormats) as (keyof typeof exportFormats)[];
const tables = new Map(tenantTables.map((table) => [table.name, table]));
const tableList = [...tables.keys()].join(', ').replace(/(.{1,110})(?: |$)/g, '  $1\n');

const exportArguments = read.defineArguments({
  usage: 'npm run export -- --table NAME --format FORMAT --tenant T --out FOLDER [options]',
  about: `Exports the rows of one tenant from a table or view to files of at most ${formatNumber(maxPartRows)} rows each.`,
  options: {
    table: read.choiceOption('NAME', 'table or view to export; required', [...tables.keys()]),
    format: read.choiceOption('FORMAT', `${formats.join(', ')}; required`, formats),
    tenant: read.tenantOption('tenant to export; required'),
    out: read.option('FOLDER', 'a new or empty folder, or the folder of a run to resume; required', (path) =>
      resolve(path),
    ),
    since: read.timeOption(
      'TIME',
      `only rows from this time on, YYYY-MM-DD or RFC 3339. For attempts, this is the time of arrival
(received_at): exports of consecutive periods contain each answer once, also late answers`,
    ),
    until: read.timeOption('TIME', 'only rows before this time (default: the start of the export)'),
    'part-rows': read.integerOption(
      1,
      maxPartRows,
      `maximum rows per file, 1 to ${maxPartRows} (default: ${maxPartRows})`,
    ),
    json: read.jsonFlag,
  },
  examples: [
    'npm run export -- --table attempts --format parquet --tenant school-1 --out may --since 2026-05-01 --until 2026-06-01',
  ],
  notes: `Tables and views:
${tableList}
manifest.json lists each file with its rows, bytes, SHA-256, first and last key. If a run is stopped or killed, the same
command verifies the existing files and resumes after the last complete one. The command fails if FOLDER contains
anything else.

Times are UTC, in ISO 8601 for CSV and NDJSON. In CSV, a missing value is empty and an empty text is "".

It connects to the service running on DATA_DIR, or starts Redis and ClickHouse itself.`,
  read: (values, given) => {
    const {
      table: name,
      format,
      tenant,
      out,
      json,
      'part-rows': most,
      ...period
    } = read.rejectOperands(values, given);
    const table = tables.get(name ?? '');
    if (table === undefined || format === null || tenant === null || out === null)
      throw new read.UsageError('Pass --table, --format, --tenant and --out');
    const [since, until] = [toIsoTime(period.since), toIsoTime(period.until)];
    if (table.time === null && (since ?? until) !== null)
      throw new read.UsageError(`${name} has no time column. Omit --since and --until`);
    const part_rows = Math.min(most ?? maxPartRows, table.maxRows);
    return { table, out, json, spec: { table: table.name, format, tenant, since, until, part_rows } };
  },
});

const toIsoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

type ExportArguments = NonNullable<ReturnType<typeof exportArguments.read>>;

export const main = defineCommand({ name: 'export', ...exportArguments, run: exportTable });

async function exportTable(context: CommandContext, args: ExportArguments): Promise<void> {
  const startedAt = performance.now();
  const existing = await openExportFolder(args.out, args.spec, context.closers);
  const isDone = existing !== null && existing.finished_at !== null;
  const manifest = isDone
    ? existing
    : await withServers(context, (servers) => writeParts(context, args, existing, servers));
  const { rows, parts, waiting_answers: waitingAnswers } = manifest;
  const bytes = computeSum(parts.map((part) => part.bytes));
  const seconds = (performance.now() - startedAt) / 1000;
  const resumedAfterPart = existing?.parts.length ?? 0;
  const summary = { rows, parts: parts.length, bytes, seconds, resumedAfterPart, waitingAnswers };
  const subject = `${formatNumber(rows)} rows of ${args.table.name} for tenant ${args.spec.tenant}`;
  const text = `${subject} written: ${parts.length} files, ${formatNumber(bytes)} bytes, ${seconds.toFixed(1)} s`;
  const note = `\n  Note: ${formatNumber(waitingAnswers)} accepted answers were not yet in ClickHouse and may be missing`;
  context.print(args.json ? formatJsonLine(summary) : `${text}${waitingAnswers > 0 ? note : ''}`);
}

async function writeParts(
  { showProgress }: CommandContext,
  { table, out, spec }: ExportArguments,
  existing: Manifest | null,
  servers: Servers,
): Promise<Manifest> {
  await updateSchema(servers);
  let manifest = existing ?? (await writeManifest(out, await createManifest(table, spec, servers)));
  const rows = { table, tenant: spec.tenant, since: spec.since, before: manifest.rows_before };
  const reader = createTenantReader(servers.clickhouse, rows, servers.signal);
  const total = await reader.fetchPartFacts({ after: null, last: null });
  for (;;) {
    showProgress(
      `${formatNumber(manifest.rows)} of ${formatNumber(total.rows)} rows of ${table.name} written`,
    );
    const part = await writePart(reader, out, spec, manifest);
    if (part === null) return writeManifest(out, { ...manifest, finished_at: new Date().toISOString() });
    const parts = [...manifest.parts, part];
    manifest = await writeManifest(out, { ...manifest, parts, rows: manifest.rows + part.rows });
  }
}

async function createManifest(table: TenantTable, spec: ExportSpec, { redis }: Servers): Promise<Manifest> {
  const now = new Date().toISOString();
  const before = spec.until !== null && spec.until < now ? spec.until : now;
  return {
    ...{ version: 1, ...spec, time_column: table.time, rows_before: before, started_at: now },
    waiting_answers: await countPendingAnswers(redis, Date.parse(before)),
    ...{ key: table.key.map(({ name }) => name), rows: 0, parts: [], finished_at: null },
  };
}

/** Maximum time from arrival to the outbox, and to ClickHouse while a service runs. */
const [maxCommitMs, maxStoreMs] = [1000, 10_000];

/** @returns 0 if ClickHouse has all answers from before that time, else the outbox's length at the limit */
async function countPendingAnswers(redis: RedisClient, before: number): Promise<number> {
  await sleep(before + maxCommitMs - Date.now());
  const outbox = createOutbox(redis, (await readDeployment(redis))?.partitions ?? defaultPartitions);
  for (const limit = Date.now() + maxStoreMs; ; await sleep(200)) {
    const { outboxLength, oldestPendingSeconds } = await outbox.facts();
    if (outboxLength === 0 || Date.now() - 1000 * oldestPendingSeconds >= before) return 0;
    if (Date.now() > limit) return outboxLength;
  }
}

/** Rows may change while a part is read. */
const maxAttempts = 10;

/** @returns null after the last part @throws StartError */
async function writePart(reader: TenantReader, out: string, spec: ExportSpec, manifest: Manifest) {
  const after = manifest.parts.at(-1)?.last_key ?? null;
  const file = nextPartName(manifest);
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    const range = { after, last: await reader.findPartEnd(after, spec.part_rows) };
    const { rows, first, last, digest } = await reader.fetchPartFacts(range);
    if (rows === 0 && range.last === null) {
      // An earlier attempt may have written rows that are erased now.
      await rm(join(out, file), { force: true });
      return null;
    }
    const read_at = new Date().toISOString();
    const content = await writeAtomically(out, file, await reader.streamPart(range, spec.format));
    // Compare the facts again: rows of a Parquet file cannot be counted here.
    if (rows > 0 && rows <= spec.part_rows && (await reader.fetchPartFacts(range)).digest === digest)
      return { file, rows, ...content, first_key: first, last_key: last, read_at };
  }
  throw new StartError(
    'The rows keep changing, for example because of erasures. Run the same command again to resume',
  );
}
