import { setTimeout as sleep } from 'node:timers/promises';
import type { RebuildPool } from '../../compute/job-pools.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import type { CompareReply, RestoreReply } from '../../contracts/rebuild/rebuild-tasks.js';
import { ApiError } from '../../errors.js';
import { indices, splitIntoParts } from '../../lists.js';
import type { Checkpoint, RebuildStore } from '../../store/rebuild/rebuild-store.js';
import { defaultPartitions } from '../../store/redis/server/deployment.js';
import type { RebuildSource } from '../../warehouse/reads/rebuild-source.js';

export interface RebuildDependencies {
  readonly source: RebuildSource;
  readonly store: RebuildStore;
  readonly openThreads: (timeZones: ReadonlyMap<string, string>) => RebuildPool;
}

export interface RebuildOptions {
  /** @throws Error if this process lost the lock, which it notices within 2 s */
  readonly ensureMayContinue: () => void;
  readonly onProgress: (progress: { step: string; answers: number; total: number }) => void;
}

const maxBrokenNames = 10;
const maxTaskTries = 30;
const retryDelayMs = 1000;
/** The replay repeats while ClickHouse has more rows than were replayed, because drained rows may be in flight. */
const maxPasses = 4;

export async function replayAllLearners(
  { source, store, openThreads }: RebuildDependencies,
  { ensureMayContinue, onProgress }: RebuildOptions,
  partitionCount: number,
  start: Checkpoint,
) {
  const { partitions, idsFrom } = start;
  const since = performance.now();
  const threads = openThreads(await readTimeZones(source));
  const broken: string[] = [];
  let brokenCount = 0;
  let checkpoint = start;
  const save = async (change: Partial<Checkpoint>): Promise<void> => {
    checkpoint = { ...checkpoint, ...change };
    ensureMayContinue();
    await store.saveCheckpoint(checkpoint);
  };

  async function replayPages(): Promise<void> {
    const total = await source.countAnswers(partitions);
    const recordProgress = async (reply: RestoreReply, last: LearnerId | null): Promise<void> => {
      brokenCount += reply.brokenCount;
      broken.push(...reply.brokenLearners.slice(0, maxBrokenNames - broken.length));
      const learners = checkpoint.learners + reply.learners;
      const answers = checkpoint.answers + reply.answers;
      await save({ learners, answers, ...(last === null ? { learnersDone: true } : { after: last }) });
      onProgress({ step: 'replaying learners', answers, total });
    };
    // Saves a page after all earlier pages, so that a resumed run skips none.
    const inFlight: (() => Promise<void>)[] = [];
    for await (const { rows, last } of source.pages(partitions, checkpoint.after)) {
      const reply = withRetries(() => threads.restore(rows, partitionCount, idsFrom), ensureMayContinue);
      // Prevents an unhandled rejection before the await.
      reply.catch(() => undefined);
      inFlight.push(async () => recordProgress(await reply, last));
      if (inFlight.length > threads.threads) await inFlight.shift()?.();
    }
    for (const noted of inFlight) await noted();
    await save({ learnersDone: true });
  }

  try {
    for (let passes = 1; ; passes++) {
      if (!checkpoint.learnersDone) await replayPages();
      if (checkpoint.answers >= (await source.countAnswers(partitions)) || passes === maxPasses) break;
      await save({ after: null, learnersDone: false, learners: 0, answers: 0 });
    }
  } finally {
    await threads.close();
  }
  return { checkpoint, broken, brokenCount, replaySeconds: (performance.now() - since) / 1000 };
}

const readTimeZones = async (source: RebuildSource): Promise<Map<string, string>> =>
  new Map((await source.timeZones()).map(({ tenant, timeZone }) => [tenant, timeZone]));

async function withRetries<Reply>(
  write: () => Promise<Reply>,
  ensureMayContinue: () => void,
): Promise<Reply> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof ApiError) || tries === maxTaskTries) throw error;
    }
    await sleep(retryDelayMs);
    ensureMayContinue();
  }
}

const maxListedDifferences = 100;
const learnersPerRecheck = 500;
const maxRechecks = 10;
const recheckDelayMs = 200;

export type VerifyResult = Awaited<ReturnType<typeof verifyLearners>>;

/**
 * Read-only; the service may run. Compares learners again of whom Redis has more answers: reads rows in Redis, then
 * in ClickHouse, then learners, so that a row that moves between the reads is seen. Only a learner who answers at that
 * moment differs again.
 */
export async function verifyLearners(
  { source, store, openThreads }: RebuildDependencies,
  { onProgress }: Pick<RebuildOptions, 'onProgress'>,
) {
  const since = performance.now();
  const partitionCount = (await store.readPartitionCount()) ?? defaultPartitions;
  const all = indices(partitionCount);
  const threads = openThreads(await readTimeZones(source));
  const differing: CompareReply['differences'][number][] = [];
  const sums = { learners: 0, answers: 0, differingCount: 0 };
  const add = (reply: CompareReply): void => {
    sums.learners += reply.learners - reply.learnersAhead.length;
    sums.differingCount += reply.differences.length;
    differing.push(...reply.differences.slice(0, maxListedDifferences - differing.length));
  };

  /** @returns learners with more answers in Redis than rows */
  async function compareStored(): Promise<LearnerId[]> {
    const total = await source.countAnswers(all);
    const ahead: LearnerId[] = [];
    for await (const { rows } of source.pages(all, null)) {
      const reply = await threads.compare({
        rows,
        pendingRows: [],
        expectedLearners: [],
        partitions: partitionCount,
      });
      add(reply);
      sums.answers += reply.answers;
      ahead.push(...reply.learnersAhead);
      onProgress({ step: 'comparing learners', answers: sums.answers, total });
    }
    return ahead;
  }

  async function comparePending(learners: readonly LearnerId[]): Promise<number> {
    let expectedLearners = learners;
    for (let rechecks = 0; rechecks < maxRechecks && expectedLearners.length > 0; rechecks++) {
      if (rechecks > 0) await sleep(recheckDelayMs);
      const pendingRows = await store.readPendingRows(expectedLearners, partitionCount);
      const rows = await source.readLearners(expectedLearners);
      const reply = await threads.compare({
        rows,
        pendingRows,
        expectedLearners,
        partitions: partitionCount,
      });
      add(reply);
      expectedLearners = reply.learnersAhead;
    }
    return expectedLearners.length;
  }

  try {
    const ahead = await compareStored();
    for await (const known of store.scanLearners()) ahead.push(...(await source.findUnstored(known)));
    let undecided = 0;
    for (const some of splitIntoParts(ahead, learnersPerRecheck)) undecided += await comparePending(some);
    const seconds = (performance.now() - since) / 1000;
    /** `waiting`: learners who were compared again; `undecided`: those who continued to answer. */
    return { ...sums, differing, undecided, waiting: ahead.length, seconds };
  } finally {
    await threads.close();
  }
}
