import { appendFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../../app/startup/engine.js';
import type { TrackEvent } from '../../contracts/answers/track-task.js';
import { parseOutboxId } from '../../contracts/outbox/outbox-ids.js';
import { ensureFolder } from '../../embedded/private-file.js';
import { ApiError, removeRetryAdvice } from '../../errors.js';
import { formatNumber } from '../../lab/report/format.js';
import { StartError, waitAtMost } from '../../lifecycle.js';
import { indices } from '../../lists.js';
import type { FileAnswer } from '../../services/answer-log/rows.js';
import { createFeeder, type Feeder, StalledError } from '../../services/import/feeder.js';
import type { ImportRecord, ImportStore } from '../../store/learners/import-store.js';
import { partitionOf } from '../../store/redis/keys.js';
import type { AnswerLogFile, LogPage } from '../answer-log/open-log.js';
import type { CommandContext } from '../support/command.js';
import type { ProcessLock } from '../support/servers.js';

const savePositionMs = 1000;
/** Far below the limit of the outbox, which live answers share. */
const maxBacklog = 200_000;
const backlogPauseMs = 200;
const progressMs = 500;
/** Share of the shutdown time. Later closers need the rest. */
const inFlightTimeShare = 1 / 4;
/** After this time without progress, the import leaves the rows to the service: ClickHouse may be down. */
const maxStoreWaitMs = 60_000;
const storedPollMs = 200;

interface ImportRun {
  readonly context: CommandContext;
  readonly args: { readonly tenant: string };
  readonly log: AnswerLogFile;
  readonly engine: Engine;
  readonly store: ImportStore;
  readonly lock: ProcessLock;
  readonly record: ImportRecord;
}

export type ImportSummary = NonNullable<Awaited<ReturnType<typeof runImport>>>;

/**
 * A resumed run sends only rows after its position, but checks all: rejects and figures cover the whole file.
 * @returns null after a signal; `stored`: ClickHouse has all rows
 * @throws StartError if the run must be resumed
 */
export async function runImport(run: ImportRun) {
  const { context, args, log, engine, store, lock, record } = run;
  const { compute, outbox, partitions } = engine;
  const { closers } = context;
  const figures = { rows: 0, counted: 0, skipped: 0, rejected: 0, bytes: 0 };
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
  const rejects = openRejectsFile(context.config.dataDir, log.path, record.id);
  const parsePage = createPageParser(run, figures, rejects.add);
  const { id: epoch } = await outbox.readEpoch();
  const enterStage = stopOnSignal(context, feeder);
  const watch = watchProgress(run, figures);
  const onPosition = createPacer(run, watch.isFull);
  let lastLine = 0;
  /** All lines up to it are counted or rejected. */
  const position = (): number => Math.max(record.line, (feeder.findUncountedLine() ?? lastLine + 1) - 1);
  const pages = log.readPages(record.startedAt, (chunk) => {
    figures.bytes += chunk.length;
  });
  try {
    const speed = await withResumeHint(async () => {
      for await (const page of pages) {
        if (closers.closing) break;
        await feeder.push(parsePage(page));
        lastLine = page.rows.at(-1)?.place ?? lastLine;
        await onPosition(position());
      }
      await feeder.drain();
      if (closers.closing) return null;
      enterStage('storing');
      const speed = watch.speed();
      await lock.confirm();
      await store.savePosition(position());
      return speed;
    });
    if (speed === null) return null;
    const { bytes: _, ...counts } = figures;
    const stored = await waitUntilStored(run);
    // Last: until then, the same command resumes the import and stores the remaining rows.
    if (!closers.closing) await withResumeHint(() => finish(run, position()));
    return {
      ...{ file: log.path, format: log.format.name, tenant: args.tenant, ...counts },
      rejectsFile: figures.rejected > 0 ? rejects.path : null,
      resumedAfterLine: record.line,
      ...speed,
      stored,
      notes: buildNotes(stored, stored && (await outbox.readEpoch()).id !== epoch),
    };
  } finally {
    enterStage('done');
    watch.end();
  }
}

async function finish({ store, lock, record }: ImportRun, line: number): Promise<void> {
  await lock.confirm();
  await store.finish(record.id, line, Date.now());
}

/** `skipped`: counted by an earlier run. */
type ImportFigures = Record<'rows' | 'counted' | 'skipped' | 'rejected' | 'bytes', number>;

interface RejectedRow {
  readonly line: number;
  readonly reason: string;
}

function createPageParser(
  { args, record }: ImportRun,
  figures: ImportFigures,
  reject: (rows: readonly RejectedRow[]) => void,
) {
  return ({ fileRows, rows }: LogPage): TrackEvent[] => {
    const receivedAt = Date.now();
    const rejected: RejectedRow[] = [];
    const events = rows.flatMap(({ place, row }) => {
      if (row.answer === null) {
        if (!row.isFiltered) rejected.push({ line: row.line, reason: row.message });
        return [];
      }
      if (place > record.line) return [toEvent(row.answer, args.tenant, record, receivedAt, place)];
      figures.skipped++;
      return [];
    });
    figures.rows += fileRows;
    figures.rejected += rejected.length;
    reject(rejected);
    return events;
  };
}

const toEvent = (
  { userId, skillIds, isCorrect, itemId, at, seconds }: FileAnswer,
  tenant: string,
  { startedAt }: ImportRecord,
  receivedAt: number,
  place: number,
): TrackEvent => ({
  ...{ tenant, userId, skillIds, listsSkills: false, isCorrect, itemId, eventId: null },
  ...{ timeSpentSeconds: seconds, confidenceScore: null, questionDifficulty: null },
  ...{ occurredAt: at ?? startedAt, occurredAtText: null, receivedAt, importLine: place },
});

/** Pauses while the backlog is too large. If saving fails, only a resume is slower. */
function createPacer({ store, lock, context: { closers, logger } }: ImportRun, isFull: () => boolean) {
  let savedAt = performance.now();
  return async (line: number): Promise<void> => {
    lock.check();
    if (performance.now() - savedAt < savePositionMs) return;
    savedAt = performance.now();
    const later = (error: unknown) =>
      logger.debug({ err: error }, 'saving the position failed; the import retries');
    await store.savePosition(line).catch(later);
    while (isFull() && !closers.closing) await sleep(backlogPauseMs);
  };
}

/** @throws StartError if running the command again can help */
async function withResumeHint<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StalledError || error instanceof ApiError)) throw error;
    throw new StartError(`${removeRetryAdvice(error.message)}. Run the same command again to resume`, {
      cause: error,
    });
  }
}

type ImportStage = 'counting' | 'storing' | 'done';

/** Stops sending and waits briefly for rows in flight. The next run resolves unknown outcomes. */
export function stopOnSignal(
  { closers, stderr, showProgress }: Pick<CommandContext, 'closers' | 'stderr' | 'showProgress'>,
  feeder: Feeder,
): (to: ImportStage) => void {
  let stage: ImportStage = 'counting';
  closers.add('import', async (limitMs) => {
    showProgress('');
    if (stage === 'storing')
      stderr.write('All rows are imported; the service moves them from the outbox to ClickHouse\n');
    if (stage !== 'counting') return;
    stderr.write('Stopped; run the same command again to resume\n');
    await waitAtMost(feeder.stop(), inFlightTimeShare * limitMs);
  });
  return (to) => {
    stage = to;
  };
}

function watchProgress({ engine, context, log }: ImportRun, figures: ImportFigures) {
  const since = performance.now();
  const speed = () => {
    const seconds = (performance.now() - since) / 1000;
    return { seconds, rowsPerSecond: Math.round(figures.counted / Math.max(seconds, 0.001)) };
  };
  let backlog: number | null = null;
  const timer = setInterval(async () => {
    const parts = [
      `${Math.floor((100 * figures.bytes) / Math.max(1, log.bytes))} %`,
      `${formatNumber(figures.rows)} rows`,
      `${formatNumber(speed().rowsPerSecond)}/s`,
      `${formatNumber(figures.rejected)} rejected`,
      ...(backlog === null ? [] : [`${formatNumber(backlog)} waiting for ClickHouse`]),
    ];
    context.showProgress(parts.join(', '));
    const facts = await engine.outbox.facts().catch((error: unknown) => {
      context.logger.debug({ err: error }, 'reading the backlog failed');
    });
    backlog = facts?.outboxLength ?? null;
  }, progressMs);
  return { speed, isFull: () => (backlog ?? 0) > maxBacklog, end: () => clearInterval(timer) };
}

/**
 * Waits until ClickHouse has all rows committed now. Outbox ids start with the time of Redis, so the oldest
 * rows must be newer than the start of the wait.
 * @returns false without progress for a minute
 */
async function waitUntilStored({ engine, context: { closers, logger } }: ImportRun): Promise<boolean> {
  const { outbox, partitions } = engine;
  let [committedBy, lastHeads] = [Number.NaN, ''];
  for (let movedAt = performance.now(); !closers.closing && performance.now() - movedAt <= maxStoreWaitMs; ) {
    try {
      if (Number.isNaN(committedBy)) committedBy = (await outbox.readEpoch()).ms;
      const heads = (await outbox.readBacklog(indices(partitions))).flatMap(({ head }) => head ?? []);
      const pendingHeads = heads.filter((head) => parseOutboxId(head).ms <= committedBy).join();
      if (pendingHeads === '') return true;
      if (pendingHeads !== lastHeads) movedAt = performance.now();
      lastHeads = pendingHeads;
    } catch (error) {
      logger.debug({ err: error }, 'reading the outbox failed');
    }
    await sleep(storedPollMs);
  }
  return false;
}

const restartNote =
  'Redis restarted during the import. If it was killed, rows of its last second may be lost (EMBEDDED_REDIS_FSYNC)';

const buildNotes = (stored: boolean, restarted: boolean): string[] => [
  ...(stored
    ? []
    : ['some rows are not in ClickHouse yet; the outbox keeps them until the service drains it']),
  ...(restarted ? [restartNote] : []),
];

function openRejectsFile(dataDir: string, inputPath: string, importId: string) {
  const folder = join(dataDir, 'imports');
  const path = join(folder, `${basename(inputPath)}.${importId.slice(-12)}.rejects.ndjson`);
  // A resumed run rejects the same rows again.
  rmSync(path, { force: true });
  const add = (rows: readonly RejectedRow[]): void => {
    if (rows.length === 0) return;
    ensureFolder(folder);
    appendFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''), { mode: 0o600 });
  };
  return { path, add };
}
