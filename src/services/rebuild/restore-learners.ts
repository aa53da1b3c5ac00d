/** The learners' part of a rebuild: pages of rows, read one after the other and replayed side by side. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RestoreReply } from '../../contracts/rebuild-tasks.js';
import { ApiError } from '../../errors.js';
import type { Checkpoint } from '../../store/rebuild/rebuild-store.js';
import type { RebuildOptions, RebuildParts, RebuildResult } from './rebuild.js';

const maxNames = 10;
/** A page that Redis did not take is written again. */
const maxTries = 30;
const retryMs = 1000;
/** Rows may still arrive from a process that had them in flight: then all is replayed once more. */
const maxPasses = 4;

type Replayed = Pick<RebuildResult, 'replaySeconds' | 'broken' | 'brokenCount'>;

/** @param count partitions of the deployment */
export async function restoreLearners(
  parts: RebuildParts,
  { check, onProgress }: Pick<RebuildOptions, 'check' | 'onProgress'>,
  count: number,
  start: Checkpoint,
): Promise<Replayed & { readonly checkpoint: Checkpoint }> {
  const { source, store } = parts;
  const { partitions, idsFrom } = start;
  const since = performance.now();
  const threads = parts.openThreads();
  const broken: string[] = [];
  let brokenCount = 0;
  let checkpoint = start;
  const save = (change: Partial<Checkpoint>): Promise<void> => {
    checkpoint = { ...checkpoint, ...change };
    check();
    return store.save(checkpoint);
  };

  async function pass(): Promise<void> {
    const total = await source.countAnswers(partitions);
    const restored = ({ rows, last }: { rows: Uint8Array; last: Checkpoint['after'] }) => {
      const reply = withRetries(() => threads.restore(rows, count, idsFrom), check);
      return async (): Promise<void> => {
        const { learners, answers, ...more } = await reply;
        brokenCount += more.brokenCount;
        broken.push(...more.broken.slice(0, maxNames - broken.length));
        const sums = { learners: checkpoint.learners + learners, answers: checkpoint.answers + answers };
        await save({ ...sums, ...(last === null ? { learnersDone: true } : { after: last }) });
        onProgress({ step: 'replaying learners', answers: checkpoint.answers, total });
      };
    };
    // A page is noted when all before it are there.
    const inFlight: (() => Promise<void>)[] = [];
    for await (const page of source.pages(partitions, checkpoint.after)) {
      inFlight.push(restored(page));
      if (inFlight.length > threads.threads) await inFlight.shift()?.();
    }
    for (const noted of inFlight) await noted();
    await save({ learnersDone: true });
  }

  try {
    for (let passes = 1; ; passes++) {
      if (!checkpoint.learnersDone) await pass();
      if (checkpoint.answers >= (await source.countAnswers(partitions)) || passes === maxPasses) break;
      await save({ after: null, learnersDone: false, learners: 0, answers: 0 });
    }
  } finally {
    await threads.close();
  }
  return { checkpoint, broken, brokenCount, replaySeconds: (performance.now() - since) / 1000 };
}

/** The promise is watched from the start, for it may fail before its turn to be awaited. */
function withRetries(restore: () => Promise<RestoreReply>, check: () => void): Promise<RestoreReply> {
  const attempt = async (tries = 1): Promise<RestoreReply> => {
    try {
      return await restore();
    } catch (error) {
      if (!(error instanceof ApiError) || tries === maxTries) throw error;
    }
    await sleep(retryMs);
    check();
    return attempt(tries + 1);
  };
  const result = attempt();
  result.catch(() => undefined);
  return result;
}
