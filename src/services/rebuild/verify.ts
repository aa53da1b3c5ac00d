/**
 * Compares every learner in Redis with what the rows give, beside a running service, and writes nothing.
 *
 * Of some learners Redis has answers whose rows were not stored when they were read. These are compared once more, with
 * the rows that wait in Redis read first, then those in ClickHouse, and what is stored last: a row is then in the one or
 * the other, and only somebody who answers at that very moment is ahead again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeAttemptRow } from '../../contracts/attempt-row-reader.js';
import { learnerName } from '../../contracts/learner-name.js';
import type { CompareReply } from '../../contracts/rebuild-tasks.js';
import type {
  AttemptPage,
  FoundLearners,
  LearnerPlace,
  RebuildSource,
  RebuildStore,
  RebuildThreads,
} from './ports.js';
import type { RebuildOptions } from './rebuild.js';

export interface VerifyParts {
  readonly source: RebuildSource;
  readonly store: RebuildStore;
  readonly openThreads: () => RebuildThreads;
}

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

/** Differences that are told. */
const maxTold = 100;
/** Learners who are compared once more together. */
const together = 500;
const tries = 10;
const retryMs = 200;

export async function verify(parts: VerifyParts, options: VerifyOptions): Promise<VerifyResult> {
  const since = performance.now();
  const count = (await parts.store.partitions()) ?? options.defaultPartitions;
  const threads = parts.openThreads();
  const tally = createTally();
  try {
    const behind = await compareStored(parts, options, threads, count, tally);
    for await (const there of parts.store.learners()) behind.push(...(await parts.source.unknown(there)));
    for (let at = 0; at < behind.length; at += together)
      await compareWaiting(parts, threads, count, behind.slice(at, at + together), tally);
    return { ...tally.result(), waiting: behind.length, seconds: (performance.now() - since) / 1000 };
  } finally {
    await threads.close();
  }
}

function createTally() {
  const differing: CompareReply['differing'][number][] = [];
  const sums = { learners: 0, answers: 0, differingCount: 0, undecided: 0 };
  return {
    add: (reply: CompareReply): void => {
      sums.learners += reply.learners - reply.lacking.length;
      sums.answers += reply.answers;
      sums.differingCount += reply.differing.length;
      differing.push(...reply.differing.slice(0, maxTold - differing.length));
    },
    undecided: (learners: number): void => {
      sums.undecided += learners;
    },
    answers: () => sums.answers,
    result: () => ({ ...sums, differing }),
  };
}

/** @returns learners of whom Redis has more answers than the rows */
async function compareStored(
  { source }: VerifyParts,
  { onProgress }: VerifyOptions,
  threads: RebuildThreads,
  count: number,
  tally: ReturnType<typeof createTally>,
): Promise<LearnerPlace[]> {
  const all = Array.from({ length: count }, (_, partition) => partition);
  const total = await source.countAnswers(all);
  const behind: LearnerPlace[] = [];
  let after: LearnerPlace | null = null;
  for (;;) {
    const page: AttemptPage | null = await source.page(all, after);
    if (page === null) return behind;
    const reply = await threads.compare(page, count);
    tally.add(reply);
    behind.push(...reply.lacking);
    after = page.last;
    onProgress({ step: 'comparing learners', answers: tally.answers(), total });
  }
}

/** With the rows that wait in Redis. */
async function compareWaiting(
  { source, store }: VerifyParts,
  threads: RebuildThreads,
  count: number,
  learners: readonly LearnerPlace[],
  tally: ReturnType<typeof createTally>,
): Promise<void> {
  let open = learners;
  for (let tried = 0; tried < tries && open.length > 0; tried++) {
    if (tried > 0) await sleep(retryMs);
    const waiting = await store.waiting(open, count);
    const found = await source.learners(open);
    const { rows, names } = inOrder([...found.rows, ...waiting], found);
    const alone = open.filter((learner) => !names.has(nameOf(learner)));
    const reply = await threads.compare({ rows }, count);
    const differing = alone.map((learner) => ({ learner: nameOf(learner), what: 'is in Redis alone' }));
    tally.add({ ...reply, answers: 0, differing: [...reply.differing, ...differing] });
    open = reply.lacking;
  }
  tally.undecided(open.length);
}

const nameOf = ({ tenant, userId }: LearnerPlace): string => learnerName(tenant, userId);

/**
 * Rows as an `AttemptPage` has them, each learner's in order and once: a row may have been stored while it was looked
 * for.
 */
function inOrder(
  rows: readonly string[],
  { snapshots, baselines }: Pick<FoundLearners, 'snapshots' | 'baselines'>,
): { readonly rows: Buffer; readonly names: ReadonlySet<string> } {
  const learners = new Map<string, Map<number, string>>();
  const linesOf = (name: string): Map<number, string> => {
    const lines = learners.get(name) ?? new Map<number, string>();
    learners.set(name, lines);
    return lines;
  };
  const ownerOf = (line: string): string => {
    const [tenant = '', userId = ''] = line.split('\t', 2);
    return nameOf({ tenant, userId: userId.replaceAll(/\\(.)/g, '$1') });
  };
  for (const snapshot of snapshots) linesOf(ownerOf(snapshot)).set(0, snapshot);
  for (const row of rows) {
    const { event, figures } = decodeAttemptRow(row);
    linesOf(nameOf(event)).set(figures.learnerSeq, `${row}\t`);
  }
  // Of a learner without any of these it says nothing.
  for (const baseline of baselines) learners.get(ownerOf(baseline))?.set(Number.POSITIVE_INFINITY, baseline);
  const sorted = [...learners.values()].flatMap((lines) =>
    [...lines].sort(([a], [b]) => a - b).map(([, line]) => `${line}\n`),
  );
  return { rows: Buffer.from(sorted.join('')), names: new Set(learners.keys()) };
}
