/** The learners' part of a rebuild: pages of rows, read one after the other and replayed side by side. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RestoreReply } from '../../contracts/rebuild-tasks.js';
import { ApiError } from '../../errors.js';
import type { Checkpoint, LearnerPlace, PageOptions, RebuildThreads } from './ports.js';
import type { RebuildOptions, RebuildParts } from './rebuild.js';

/** Names that are told. */
const maxNames = 10;
/** A page that Redis did not take is written again, so often. */
const tries = 30;
const retryMs = 1000;
/** Rows may still arrive that a process had under way: then all is replayed once more. */
const passes = 3;

export interface Replayed {
  readonly checkpoint: Checkpoint;
  readonly replaySeconds: number;
  readonly broken: readonly string[];
  readonly brokenCount: number;
}

/** @param count partitions of the deployment */
export async function restoreLearners(
  parts: RebuildParts,
  options: RebuildOptions,
  count: number,
  begun: Checkpoint,
): Promise<Replayed> {
  const since = performance.now();
  const threads = parts.openThreads();
  try {
    const scan = createScan(parts, options, threads, count, begun);
    for (let pass = 0; ; pass++) {
      await scan.run();
      const stored = await parts.source.countAnswers(begun.partitions);
      if (scan.checkpoint().answers >= stored || pass === passes) break;
      await scan.again();
    }
    const replaySeconds = (performance.now() - since) / 1000;
    return { checkpoint: scan.checkpoint(), replaySeconds, ...scan.broken() };
  } finally {
    await threads.close();
  }
}

function createScan(
  { source, store }: RebuildParts,
  { check, now, onProgress }: RebuildOptions,
  threads: RebuildThreads,
  count: number,
  begun: Checkpoint,
) {
  let checkpoint = begun;
  const names: string[] = [];
  let brokenCount = 0;
  const { partitions, idsFrom } = begun;
  const page: PageOptions = { count, idsFrom };

  /** Notes a page once all before it are there. */
  async function settle(last: LearnerPlace, result: RestoreReply): Promise<void> {
    brokenCount += result.brokenCount;
    names.push(...result.broken.slice(0, maxNames - names.length));
    // Before the page is left behind: with another catalogue they would come out otherwise.
    await source.keepBaselines(result.baselines, now());
    checkpoint = {
      ...checkpoint,
      after: last,
      learners: checkpoint.learners + result.learners,
      answers: checkpoint.answers + result.answers,
      keptAbilities: checkpoint.keptAbilities + result.keptAbilities,
      newBaselines: checkpoint.newBaselines + result.baselines.length,
    };
    check();
    await store.save(checkpoint);
  }

  async function run(): Promise<void> {
    if (checkpoint.learnersDone) return;
    const total = await source.countAnswers(partitions);
    const open: { readonly last: LearnerPlace; readonly result: Promise<RestoreReply> }[] = [];
    let after = checkpoint.after;
    for (;;) {
      const next = await source.page(partitions, after);
      if (next !== null) {
        open.push({ last: next.last, result: withRetries(() => threads.restore(next, page), check) });
        after = next.last;
      }
      if (next !== null && open.length <= threads.threads) continue;
      const oldest = open.shift();
      if (oldest === undefined) break;
      await settle(oldest.last, await oldest.result);
      onProgress({ step: 'replaying learners', answers: checkpoint.answers, total });
    }
    checkpoint = { ...checkpoint, learnersDone: true };
    await store.save(checkpoint);
  }

  return {
    run,
    again: async (): Promise<void> => {
      checkpoint = {
        ...checkpoint,
        after: null,
        learnersDone: false,
        learners: 0,
        answers: 0,
        keptAbilities: 0,
      };
      await store.save(checkpoint);
    },
    checkpoint: () => checkpoint,
    broken: () => ({ broken: names, brokenCount }),
  };
}

/** A page may be written again; the promise is watched, for its turn to be awaited may come after it failed. */
function withRetries(restore: () => Promise<RestoreReply>, check: () => void): Promise<RestoreReply> {
  const attempt = async (): Promise<RestoreReply> => {
    for (let tried = 1; ; tried++) {
      try {
        return await restore();
      } catch (error) {
        if (!(error instanceof ApiError) || tried === tries) throw error;
      }
      await sleep(retryMs);
      check();
    }
  };
  const result = attempt();
  result.catch(() => undefined);
  return result;
}
