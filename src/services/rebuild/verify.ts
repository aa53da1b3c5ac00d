/**
 * Compares every learner in Redis with what the rows give, beside a running service, and writes nothing.
 *
 * Of some learners Redis has answers whose rows were not stored when they were read. These are compared once more, with
 * the rows that wait in Redis read first, then those in ClickHouse, and what is stored last: a row is then in the one or
 * the other, and only somebody who answers at that very moment is ahead again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RebuildThreads } from '../../compute/rebuild-pool.js';
import type { LearnerPlace } from '../../contracts/learner-name.js';
import type { CompareReply } from '../../contracts/rebuild-tasks.js';
import { indices, inParts } from '../../lists.js';
import type { RebuildOptions, RebuildParts } from './rebuild.js';

export interface VerifyResult {
  readonly learners: number;
  readonly answers: number;
  /** Of them, learners some of whose answers still wait in Redis. */
  readonly waiting: number;
  readonly differingCount: number;
  /** Some of them. */
  readonly differing: CompareReply['differing'];
  /** Learners who kept answering while they were compared. */
  readonly undecided: number;
  readonly seconds: number;
}

export type VerifyOptions = Pick<RebuildOptions, 'onProgress' | 'defaultPartitions'>;

/** Differences that are named. */
const maxNamed = 100;
/** Learners who are compared once more together. */
const together = 500;
const maxTries = 10;
const retryMs = 200;

export async function verify(parts: RebuildParts, options: VerifyOptions): Promise<VerifyResult> {
  const { source, store } = parts;
  const since = performance.now();
  const count = (await store.partitions()) ?? options.defaultPartitions;
  const threads = parts.openThreads();
  const tally = createTally();
  try {
    const behind = await compareStored(parts, options, threads, count, tally);
    for await (const known of store.learners()) behind.push(...(await source.unknown(known)));
    let undecided = 0;
    for (const some of inParts(behind, together))
      undecided += await compareWaiting(parts, threads, count, some, tally);
    const seconds = (performance.now() - since) / 1000;
    return { ...tally.sums, differing: tally.differing, undecided, waiting: behind.length, seconds };
  } finally {
    await threads.close();
  }
}

function createTally() {
  const differing: CompareReply['differing'][number][] = [];
  const sums = { learners: 0, answers: 0, differingCount: 0 };
  const add = (reply: CompareReply): void => {
    sums.learners += reply.learners - reply.behind.length;
    sums.differingCount += reply.differing.length;
    differing.push(...reply.differing.slice(0, maxNamed - differing.length));
  };
  return { differing, sums, add };
}

/** @returns learners of whom Redis has more answers than the rows */
async function compareStored(
  { source }: RebuildParts,
  { onProgress }: VerifyOptions,
  threads: RebuildThreads,
  count: number,
  { sums, add }: ReturnType<typeof createTally>,
): Promise<LearnerPlace[]> {
  const all = indices(count);
  const total = await source.countAnswers(all);
  const behind: LearnerPlace[] = [];
  for await (const { rows } of source.pages(all, null)) {
    const reply = await threads.compare({ rows, waiting: [], known: [], partitions: count });
    add(reply);
    sums.answers += reply.answers;
    behind.push(...reply.behind);
    onProgress({ step: 'comparing learners', answers: sums.answers, total });
  }
  return behind;
}

/** With the rows that wait in Redis. @returns how many learners kept answering */
async function compareWaiting(
  { source, store }: RebuildParts,
  threads: RebuildThreads,
  count: number,
  learners: readonly LearnerPlace[],
  { add }: ReturnType<typeof createTally>,
): Promise<number> {
  let known = learners;
  for (let tries = 0; tries < maxTries && known.length > 0; tries++) {
    if (tries > 0) await sleep(retryMs);
    const waiting = await store.waitingRows(known, count);
    const rows = await source.learners(known);
    const reply = await threads.compare({ rows, waiting, known, partitions: count });
    add(reply);
    known = reply.behind;
  }
  return known.length;
}
