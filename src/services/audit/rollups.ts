/** Compares the rollups with `attempts`, by tenant and day of occurred_at. */
import { isSettled } from './balance.js';
import type { PartitionLook } from './ports.js';
import { type Around, findOutliers, type Outlier } from './rollup-bounds.js';
import { type AuditRun, type Compared, certainLooks, lookAt, nameOf, partitionsOf, rest } from './run.js';

interface Look {
  readonly outliers: readonly Outlier[];
  /** Stored answers of the days. */
  readonly raw: number;
  /** Why the outliers may be none; null where nothing was in the way. */
  readonly obstacle: string | null;
}

/** Sums within their bounds are right; what is out of them is looked at again, until it is certain. */
export async function compareRollups(run: AuditRun): Promise<Compared & { raw: number }> {
  const until = performance.now() + run.patienceMs;
  let times: ReadonlyMap<string, number> = new Map();
  for (let round = 1; ; round++) {
    run.onStep(`rollups and stored answers, look ${round}`);
    const { outliers, raw, obstacle } = await lookOnce(run);
    if (obstacle === null) times = timesSeen(times, outliers);
    const certain = outliers.filter(({ mismatch }) => (times.get(nameOf(mismatch)) ?? 0) >= certainLooks);
    const isOver = round >= certainLooks && performance.now() > until;
    if (certain.length === outliers.length || isOver) {
      const mismatches = certain.map(({ mismatch }) => mismatch);
      return { raw, mismatches, notCompared: undecided(outliers.length - certain.length, obstacle) };
    }
    await rest(run);
  }
}

/** A sum that may be computed again at this moment is neither seen to be wrong nor to be right. */
const timesSeen = (before: ReadonlyMap<string, number>, outliers: readonly Outlier[]): Map<string, number> =>
  new Map(
    outliers.map(({ mismatch, touched }) => {
      const name = nameOf(mismatch);
      return [name, (before.get(name) ?? 0) + (touched ? 0 : 1)];
    }),
  );

async function lookOnce(run: AuditRun): Promise<Look> {
  const { store, warehouse, days, signal } = run;
  const all = partitionsOf(store);
  const epoch = await store.epoch();
  await warehouse.catchUp(signal);
  const before = await lookAt(run, all);
  const sums = [];
  for (const rollup of warehouse.rollups)
    sums.push([rollup, await warehouse.rollupSums(rollup, days, signal)] as const);
  const after = await lookAt(run, all);
  const raw = await warehouse.rawSums(days, before, signal);
  const around = { before, after, raw };
  return {
    outliers: sums.flatMap(([rollup, of]) => findOutliers(rollup, of, around)),
    raw: [...raw.values()].reduce((sum, { all }) => sum + all.attempts, 0),
    obstacle: (await store.epoch()) === epoch ? obstacleOf(around) : 'Redis was restarted meanwhile',
  };
}

const obstacleOf = ({ before, after }: Around): string | null =>
  before.every((look, i) => isSettled(look, after[i] as PartitionLook))
    ? null
    : 'an erasure or a taking back is under way';

function undecided(sums: number, obstacle: string | null): string[] {
  const why = obstacle ?? 'rows of theirs wait in the outbox, which the pipeline may be mending';
  return sums === 0 ? [] : [`${sums} daily sums of rollups: ${why}`];
}
