import { appendFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../app/engine.js';
import { parseOutboxId } from '../contracts/outbox-ids.js';
import { ensureFolder } from '../embedded/private-file.js';
import { ApiError } from '../errors.js';
import { grouped } from '../lab/report/numbers.js';
import { StartError, waitAtMost } from '../lifecycle.js';
import { indices } from '../lists.js';
import { createFeeder, type Feeder, StalledError } from '../services/import/feeder.js';
import { createOrderCheck, parseAnswer, parseRow, type RawRow } from '../services/import/rows.js';
import type { ImportRecord, ImportStore } from '../store/learners/import-store.js';
import { partitionOf } from '../store/redis/keys.js';
import type { CommandContext } from './command.js';
import { type ImportFile, readPages } from './import-file.js';
import type { ProcessLock } from './servers.js';

const savePositionMs = 1000;
/** Far below the limit of the outbox, which live answers share. */
const maxBacklog = 200_000;
const backlogPauseMs = 200;
const lookMs = 500;
/** Share of the shutdown time. Later closers need the rest. */
const inFlightShare = 1 / 4;
/** After this time without progress, the import leaves the rows to the service: ClickHouse may be down. */
const maxStoreWaitMs = 60_000;
const storedPollMs = 200;

interface ImportRun {
  readonly context: CommandContext;
  readonly args: { readonly tenant: string; readonly startMs: number | null };
  readonly file: ImportFile;
  readonly engine: Engine;
  readonly store: ImportStore;
  readonly lock: ProcessLock;
  readonly record: ImportRecord;
}

export type ImportSummary = NonNullable<Awaited<ReturnType<typeof countFile>>>;

/**
 * A resumed run sends only rows after its position, but checks all: rejects and figures cover the whole file.
 * @returns null after a signal; `stored`: ClickHouse has all rows
 * @throws StartError if the run must be resumed
 */
export async function countFile(run: ImportRun) {
  const { context, args, file, engine, store, lock, record } = run;
  const { compute, outbox, partitions } = engine;
  const { closers } = context;
  const figures = { rows: 0, counted: 0, skipped: 0, rejected: 0, backwards: 0, bytes: 0 };
  const feeder = createFeeder({
    tracker: compute,
    importId: record.id,
    shards: partitions,
    shardOf: ({ tenant, userId }) => partitionOf(tenant, userId, partitions),
    onCounted: (counted, skipped) => {
      figures.counted += counted;
      figures.skipped += skipped;
    },
  });
  const rejects = openRejects(context.config.dataDir, file.path, record.id);
  const check = pageChecker(run, figures, rejects.add);
  const { id: epoch } = await outbox.readEpoch();
  const enter = stopWithSignal(context, feeder);
  const watch = watchRun(run, figures);
  const reached = pace(run, watch.isFull);
  let last = 0;
  /** All lines up to it are counted or rejected. */
  const position = (): number => Math.max(record.line, (feeder.findUncountedLine() ?? last + 1) - 1);
  const pages = readPages(file, (chunk) => {
    figures.bytes += chunk.length;
  });
  try {
    const speed = await resumable(async () => {
      for await (const page of pages) {
        if (closers.closing) break;
        await feeder.push(check(page));
        last = page.at(-1)?.line ?? last;
        await reached(position());
      }
      await feeder.drain();
      if (closers.closing) return null;
      enter('storing');
      const speed = watch.speed();
      await lock.confirm();
      await store.finish(record.id, position(), Date.now());
      return speed;
    });
    if (speed === null) return null;
    const { bytes: _, ...counts } = figures;
    const stored = await untilStored(run);
    return {
      ...{ file: file.path, tenant: args.tenant, ...counts },
      rejectsFile: figures.rejected > 0 ? rejects.path : null,
      resumedAfterLine: record.line,
      ...speed,
      stored,
      notes: notesOf(stored, stored && (await outbox.readEpoch()).id !== epoch),
    };
  } finally {
    enter('done');
    watch.end();
  }
}

/**
 * `skipped`: counted by an earlier run. `backwards`: with a lower `order` than the learner's previous row.
 */
type Figures = Record<'rows' | 'counted' | 'skipped' | 'rejected' | 'backwards' | 'bytes', number>;

interface Rejected {
  readonly line: number;
  readonly reason: string;
}

function pageChecker(
  { args, record }: ImportRun,
  figures: Figures,
  reject: (rows: readonly Rejected[]) => void,
) {
  const rules = { tenant: args.tenant, startMs: args.startMs ?? 0, importedAt: record.startedAt };
  const goesBackwards = createOrderCheck();
  return (page: readonly RawRow[]) => {
    const receivedAt = Date.now();
    const rejected: Rejected[] = [];
    const events = page.flatMap((row) => {
      const read = parseRow(row, (fields) => parseAnswer(fields, row.line, rules, receivedAt));
      if (typeof read === 'string') {
        rejected.push({ line: row.line, reason: read });
        return [];
      }
      if (goesBackwards(read.event.userId, read.order)) figures.backwards++;
      if (row.line > record.line) return [read.event];
      figures.skipped++;
      return [];
    });
    figures.rows += page.length;
    figures.rejected += rejected.length;
    reject(rejected);
    return events;
  };
}

/** Pauses while the backlog is too large. If saving fails, only a resume is slower. */
function pace({ store, lock, context: { closers, logger } }: ImportRun, isFull: () => boolean) {
  let savedAt = performance.now();
  return async (line: number): Promise<void> => {
    lock.check();
    if (performance.now() - savedAt < savePositionMs) return;
    savedAt = performance.now();
    const later = (error: unknown) => logger.debug({ err: error }, 'the position is saved later');
    await store.savePosition(line).catch(later);
    while (isFull() && !closers.closing) await sleep(backlogPauseMs);
  };
}

/** @throws StartError if running the command again can help */
async function resumable<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StalledError || error instanceof ApiError)) throw error;
    throw new StartError(`${error.message}. Run the same command again to resume`, { cause: error });
  }
}

type Stage = 'counting' | 'storing' | 'done';

/** Stops sending and waits briefly for rows in flight. The next run resolves unknown outcomes. */
export function stopWithSignal(
  { closers, stderr, showProgress }: Pick<CommandContext, 'closers' | 'stderr' | 'showProgress'>,
  feeder: Feeder,
): (to: Stage) => void {
  let stage: Stage = 'counting';
  closers.add('import', async (limitMs) => {
    showProgress('');
    if (stage === 'storing') stderr.write('Every row is counted; the outbox keeps them for ClickHouse\n');
    if (stage !== 'counting') return;
    stderr.write('Stopped; run the same command again to resume\n');
    await waitAtMost(feeder.stop(), inFlightShare * limitMs);
  });
  return (to) => {
    stage = to;
  };
}

function watchRun({ engine, context, file }: ImportRun, figures: Figures) {
  const since = performance.now();
  const speed = () => {
    const seconds = (performance.now() - since) / 1000;
    return { seconds, rowsPerSecond: Math.round(figures.counted / Math.max(seconds, 0.001)) };
  };
  let backlog: number | null = null;
  const timer = setInterval(async () => {
    const parts = [
      `${Math.floor((100 * figures.bytes) / Math.max(1, file.bytes))} %`,
      `${grouped(figures.rows)} rows`,
      `${grouped(speed().rowsPerSecond)}/s`,
      `${grouped(figures.rejected)} rejected`,
      ...(backlog === null ? [] : [`${grouped(backlog)} wait for ClickHouse`]),
    ];
    context.showProgress(parts.join(', '));
    const facts = await engine.outbox.facts().catch((error: unknown) => {
      context.logger.debug({ err: error }, 'the backlog is not known');
    });
    backlog = facts?.outboxLength ?? null;
  }, lookMs);
  return { speed, isFull: () => (backlog ?? 0) > maxBacklog, end: () => clearInterval(timer) };
}

/**
 * Waits until ClickHouse has all rows committed now. Outbox ids start with the time of Redis, so the oldest
 * rows must be newer than the start of the wait.
 * @returns false without progress for a minute
 */
async function untilStored({ engine, context: { closers, logger } }: ImportRun): Promise<boolean> {
  const { outbox, partitions } = engine;
  let [until, seen] = [Number.NaN, ''];
  for (let movedAt = performance.now(); !closers.closing && performance.now() - movedAt <= maxStoreWaitMs; ) {
    try {
      if (Number.isNaN(until)) until = (await outbox.readEpoch()).ms;
      const heads = (await outbox.readBacklog(indices(partitions))).flatMap(({ head }) => head ?? []);
      const left = heads.filter((head) => parseOutboxId(head).ms <= until).join();
      if (left === '') return true;
      if (left !== seen) movedAt = performance.now();
      seen = left;
    } catch (error) {
      logger.debug({ err: error }, 'the outbox cannot be asked');
    }
    await sleep(storedPollMs);
  }
  return false;
}

const restartNote =
  'Redis was restarted meanwhile: if it was killed, rows of its last second may be lost (EMBEDDED_REDIS_FSYNC)';

const notesOf = (stored: boolean, restarted: boolean): string[] => [
  ...(stored ? [] : ['not every row is in ClickHouse yet; the outbox keeps them until the pipeline runs']),
  ...(restarted ? [restartNote] : []),
];

function openRejects(dataDir: string, inputPath: string, importId: string) {
  const folder = join(dataDir, 'imports');
  const path = join(folder, `${basename(inputPath)}.${importId.slice(-12)}.rejects.ndjson`);
  // A resumed run rejects the same rows again.
  rmSync(path, { force: true });
  const add = (rows: readonly Rejected[]): void => {
    if (rows.length === 0) return;
    ensureFolder(folder);
    appendFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''), { mode: 0o600 });
  };
  return { path, add };
}
