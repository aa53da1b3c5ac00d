/** One run over the file: from its position to the end, or until it is stopped. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.js';
import { StartError, within } from '../lifecycle.js';
import { createFeeder, type Feeder, StalledError } from '../services/import/feeder.js';
import { type ImportFigures, importAttempts, newFigures } from '../services/import/import-attempts.js';
import { partitionOf } from '../store/redis/keys.js';
import type { Logger } from '../telemetry.js';
import type { CommandContext } from './command.js';
import { type ImportFile, readPages } from './import-file.js';
import type { ImportArguments } from './import-options.js';
import { openRejects } from './import-rejects.js';
import { type ImportSummary, type Progress, progressText } from './import-report.js';
import type { ImportRun } from './import-run.js';
import { untilStored } from './import-stored.js';

const savePositionMs = 1000;
/** Live answers share the outbox: an import waits for ClickHouse before it fills it, far below its bound. */
const maxBacklog = 200_000;
const backlogPauseMs = 200;
const progressMs = 500;
/** Of the time that a stop gives; whatever closes after the import needs its own. */
const underWayShare = 1 / 4;
/** ClickHouse may be away: after this long without a move the rows are left to the service's pipeline. */
const storePatienceMs = 60_000;

/** Where a run stands, for its progress. */
interface Standing {
  readonly figures: ImportFigures;
  readonly since: number;
  bytes: number;
}

/** @returns the summary, or null if a signal stopped the run. @throws StartError when it has to be resumed */
export async function countFile(
  context: CommandContext,
  args: ImportArguments,
  file: ImportFile,
  run: ImportRun,
  progress: Progress,
): Promise<ImportSummary | null> {
  const standing: Standing = { figures: newFigures(), since: performance.now(), bytes: 0 };
  const feeder = feederOf(run, standing.figures);
  const rejects = openRejects(context.config.dataDir, file.path, run.record.id);
  const { id: epoch } = await run.outbox.epoch();
  const enter = stopWithSignal(context, feeder, progress);
  const stopShowing = showProgress(context, run, file, standing, progress);
  try {
    const line = await resumable(() => readThrough(context, args, file, run, feeder, standing, rejects.add));
    if (context.closers.closing) return null;
    enter('storing');
    const seconds = (performance.now() - standing.since) / 1000;
    await resumable(() => finish(run, line));
    return {
      ...standing.figures,
      file: file.path,
      tenant: args.tenant,
      rejectsFile: rejects.close(),
      seconds,
      resumedAfter: run.record.line,
      ...(await waitForStorage(context, run, epoch)),
    };
  } finally {
    enter('done');
    stopShowing();
    rejects.close();
  }
}

function readThrough(
  { closers, logger }: CommandContext,
  { tenant, startMs }: ImportArguments,
  file: ImportFile,
  run: ImportRun,
  feeder: Feeder,
  standing: Standing,
  reject: (line: number, reason: string) => void,
): Promise<number> {
  const stopped = (): boolean => closers.closing;
  const pages = readPages(file, (chunk) => {
    standing.bytes += chunk.length;
  });
  return importAttempts({
    pages,
    rules: { tenant, startMs: startMs ?? 0, importedAt: run.record.startedAt },
    resumeAfter: run.record.line,
    feeder,
    figures: standing.figures,
    reject,
    reached: pace(run, logger, stopped),
    stopped,
  });
}

function feederOf({ engine, record }: ImportRun, figures: ImportFigures): Feeder {
  return createFeeder({
    tracker: engine.compute,
    importId: record.id,
    shards: engine.partitions,
    shardOf: ({ tenant, userId }) => partitionOf(tenant, userId, engine.partitions),
    settled: (counted, skipped) => {
      figures.counted += counted;
      figures.skipped += skipped;
    },
    now: () => performance.now(),
  });
}

/**
 * Saves the position once a second, and waits where too much of the file waits for ClickHouse. A position that
 * cannot be saved stays behind, which costs time when resuming and nothing else.
 */
function pace({ store, content, lock, outbox }: ImportRun, logger: Logger, stopped: () => boolean) {
  let savedAt = performance.now();
  const backlog = async (): Promise<number> => {
    try {
      return (await outbox.facts()).outboxLength;
    } catch (error) {
      logger.debug({ err: error }, 'the backlog is not known');
      return 0;
    }
  };
  return async (line: number): Promise<void> => {
    lock.check();
    if (performance.now() - savedAt < savePositionMs) return;
    savedAt = performance.now();
    await store
      .savePosition(content, line)
      .catch((error: unknown) => logger.debug({ err: error }, 'the position is saved later'));
    while (!stopped() && (await backlog()) > maxBacklog) await sleep(backlogPauseMs);
  };
}

async function finish({ store, content, lock, record }: ImportRun, line: number): Promise<void> {
  await lock.confirm();
  await store.finish(content, record.id, line, Date.now());
}

/** @throws StartError that says what to do, for whatever can be mended by running the command again */
async function resumable<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StalledError || error instanceof ApiError)) throw error;
    throw new StartError(`${error.message}. Run the same command again to resume`, { cause: error });
  }
}

type Stage = 'counting' | 'storing' | 'done';

/**
 * Says what a signal has interrupted, and sends nothing more. Rows under way get a moment; those that are not known
 * to be counted by then are like those of a killed run: the next one finds out.
 * @returns told how far the run is
 */
export function stopWithSignal(
  { closers, stderr }: Pick<CommandContext, 'closers' | 'stderr'>,
  feeder: Feeder,
  progress: Progress,
): (to: Stage) => void {
  let stage: Stage = 'counting';
  closers.add('import', async (limitMs) => {
    progress.show('');
    if (stage === 'storing') stderr.write('Every row is counted; the outbox keeps them for ClickHouse\n');
    if (stage !== 'counting') return;
    stderr.write('Stopped; run the same command again to resume\n');
    await within(feeder.stop(), underWayShare * limitMs);
  });
  return (to) => {
    stage = to;
  };
}

function showProgress(
  { logger }: CommandContext,
  { outbox }: ImportRun,
  file: ImportFile,
  standing: Standing,
  progress: Progress,
): () => void {
  let backlog: number | null = null;
  const timer = setInterval(() => {
    outbox.facts().then(
      ({ outboxLength }) => {
        backlog = outboxLength;
      },
      (error: unknown) => logger.debug({ err: error }, 'the backlog is not known'),
    );
    const seconds = (performance.now() - standing.since) / 1000;
    const share = standing.bytes / Math.max(1, file.bytes);
    progress.show(progressText({ ...standing.figures, share, seconds, backlog }));
  }, progressMs);
  return () => clearInterval(timer);
}

async function waitForStorage(
  { closers, logger }: CommandContext,
  { outbox, engine }: ImportRun,
  epoch: string,
): Promise<Pick<ImportSummary, 'stored' | 'notes'>> {
  const stored = await untilStored(outbox, engine.partitions, storePatienceMs, () => closers.closing, logger);
  const restarted = stored && (await outbox.epoch()).id !== epoch;
  return { stored, notes: notesOf(stored, restarted) };
}

function notesOf(stored: boolean, restarted: boolean): string[] {
  const notes: string[] = [];
  if (!stored) {
    notes.push('not every row is in ClickHouse yet; the outbox keeps them until the pipeline runs');
  }
  if (restarted) {
    notes.push(
      'Redis was restarted meanwhile: if it was killed, rows of its last second may be lost (EMBEDDED_REDIS_FSYNC)',
    );
  }
  return notes;
}
