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

const exportArguments = read.defineArguments({
  usage: 'npm run export -- --table NAME --format FORMAT --tenant T --out FOLDER [options]',
  about: `Writes the rows of one tenant to files of at most ${formatNumber(maxPartRows)} rows each, and a manifest.json that lists them with
their rows, bytes, SHA-256 and first and last key. Memory does not grow with the rows.

An export that was stopped or killed goes on behind its last whole file when the same command is given again, after
it has looked at the files that are there. Nothing else in FOLDER is touched: the command is refused.`,
  options: {
    table: read.choiceOption('NAME', 'attempts, or another table or view with a tenant', [...tables.keys()]),
    format: read.choiceOption('FORMAT', formats.join(', '), formats),
    tenant: read.tenantOption('whose rows'),
    out: read.option('FOLDER', 'a new or an empty folder, or that of the same export', (path) =>
      resolve(path),
    ),
    since: read.timeOption(
      'TIME',
      `YYYY-MM-DD or RFC 3339: only rows of this time and later. Of attempts that is the time of
arrival, received_at: exports of period after period have every answer once, late ones too`,
    ),
    until: read.timeOption('TIME', 'likewise: only rows before it (default: when the export starts)'),
    'part-rows': read.integerOption(
      1,
      maxPartRows,
      `most rows of a file, 1 to ${maxPartRows} (default: ${maxPartRows})`,
    ),
    json: read.jsonFlag,
  },
  notes: `Times are UTC, as ISO 8601 in CSV and NDJSON. In CSV an absent value is empty, and an empty text is "".
It uses the servers of the service that runs on DATA_DIR, or starts its own.`,
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
      throw new read.UsageError('--table, --format, --tenant and --out are needed');
    const [since, until] = [toIsoTime(period.since), toIsoTime(period.until)];
    if (table.time === null && (since ?? until) !== null)
      throw new read.UsageError(`${name} has no time: leave --since and --until out`);
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
  const text = `${subject} in ${parts.length} files, ${formatNumber(bytes)} bytes, in ${seconds.toFixed(1)} s`;
  const note = `\n  Note: ${formatNumber(waitingAnswers)} answers were not in ClickHouse yet`;
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
  throw new StartError('The rows change all the time; the same command goes on from here');
}
