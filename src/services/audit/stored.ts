/** Compares what was accepted with what is stored, waits in the outbox or is parked, partition by partition. */
import { compareBalance, isSettled } from './balance.js';
import type { OutboxId, PartitionLook } from './ports.js';
import type { Balance, Mismatch } from './report.js';
import { type AuditRun, type Compared, certainLooks, lookAt, partitionsOf, recurring, rest } from './run.js';

/** What is known of a partition so far. */
interface Progress {
  looks: number;
  /** What every look so far has shown; null before the first. */
  mismatches: readonly Mismatch[] | null;
  balance: Balance | null;
  /** Why the last look told nothing. */
  obstacle: string | null;
}

/** Partitions that agree are done with; the others are looked at again, until it is certain. */
export async function compareStored(run: AuditRun): Promise<Compared & { balances: Balance[] }> {
  const progress = new Map<number, Progress>(
    partitionsOf(run.store).map((p) => [p, { looks: 0, mismatches: null, balance: null, obstacle: null }]),
  );
  const until = performance.now() + run.patienceMs;
  for (let round = 1; ; round++) {
    const open = [...progress].filter(([, of]) => !isCertain(of)).map(([partition]) => partition);
    if (open.length === 0 || (round > certainLooks && performance.now() > until)) break;
    if (round > 1) await rest(run);
    run.onStep(`accepted and stored answers, look ${round}: ${open.length} partitions`);
    await compareOnce(run, open, progress);
  }
  return resultOf(progress);
}

const isCertain = ({ looks, mismatches }: Progress): boolean =>
  mismatches?.length === 0 || looks >= certainLooks;

async function compareOnce(
  run: AuditRun,
  open: readonly number[],
  progress: ReadonlyMap<number, Progress>,
): Promise<void> {
  const { store, warehouse, days, signal } = run;
  const epoch = await store.epoch();
  const before = await lookAt(run, open);
  await warehouse.catchUp(signal);
  const stored = await warehouse.stored(days, frontiersOf(before, store.partitions), signal);
  const after = await lookAt(run, open);
  const isSameRedis = (await store.epoch()) === epoch;
  before.forEach((look, i) => {
    const of = progress.get(look.partition) as Progress;
    of.obstacle = isSameRedis ? obstacleTo(look, after[i] as PartitionLook) : 'Redis was restarted meanwhile';
    if (of.obstacle !== null) return;
    const { balance, mismatches } = compareBalance(look, stored[look.partition] ?? new Map(), days);
    const isUnreadable = look.unreadable > 0 && mismatches.length > 0;
    if (isUnreadable) of.obstacle = `${look.unreadable} of its waiting or parked rows cannot be read`;
    else
      Object.assign(of, { looks: of.looks + 1, balance, mismatches: recurring(of.mismatches, mismatches) });
  });
}

const obstacleTo = (before: PartitionLook, after: PartitionLook): string | null =>
  isSettled(before, after) ? null : 'an erasure or a taking back is under way';

/** One for every partition; below the smallest id there is nothing. */
function frontiersOf(looks: readonly PartitionLook[], partitions: number): OutboxId[] {
  const frontiers = Array.from({ length: partitions }, () => ({ ms: 0, seq: 0 }));
  for (const { partition, frontier } of looks) frontiers[partition] = frontier;
  return frontiers;
}

function resultOf(progress: ReadonlyMap<number, Progress>): Compared & { balances: Balance[] } {
  const all = [...progress];
  return {
    balances: all.flatMap(([, { balance }]) => balance ?? []),
    mismatches: all.flatMap(([, of]) => (isCertain(of) ? (of.mismatches ?? []) : [])),
    notCompared: all.flatMap(([partition, of]) =>
      isCertain(of) ? [] : [`accepted and stored answers of partition ${partition}: ${of.obstacle}`],
    ),
  };
}
