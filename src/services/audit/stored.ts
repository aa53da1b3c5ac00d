/** Compares what was accepted with what is stored, waits in the outbox or is parked, partition by partition. */
import { type Balanced, compareBalance, isSettled } from './balance.js';
import type { PartitionLook } from './ports.js';
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
  const { warehouse, signal } = run;
  const marks = await marksOf(run);
  const before = await lookAt(run, open);
  await warehouse.catchUp(signal);
  const stored = await warehouse.stored(run.days, before, signal);
  const after = await lookAt(run, open);
  const inTheWay = changeOf(marks, await marksOf(run));
  const days = { ...run.days, from: Math.max(run.days.from, marks.archived + 1) };
  before.forEach((look, i) => {
    const tallies = stored.get(look.partition) ?? nothing;
    const obstacle = inTheWay ?? obstacleTo(look, after[i] as PartitionLook);
    note(progress.get(look.partition) as Progress, compareBalance(look, tallies, days), obstacle);
  });
}

function note(of: Progress, { balance, mismatches, obstacle }: Balanced, inTheWay: string | null): void {
  of.balance = balance;
  of.obstacle = inTheWay ?? obstacle;
  if (of.obstacle !== null) return;
  of.looks++;
  of.mismatches = recurring(of.mismatches, mismatches);
}

/** What must be the same before and after a look. */
const marksOf = async ({ store, warehouse, signal }: AuditRun) => ({
  epoch: await store.epoch(),
  archived: await warehouse.archivedThrough(signal),
});

type Marks = Awaited<ReturnType<typeof marksOf>>;

function changeOf(before: Marks, after: Marks): string | null {
  if (before.epoch !== after.epoch) return 'Redis was restarted meanwhile';
  return before.archived === after.archived ? null : 'a month is being archived';
}

const nothing = { below: new Map(), among: new Map() };

const obstacleTo = (before: PartitionLook, after: PartitionLook): string | null =>
  isSettled(before, after) ? null : 'an erasure or a taking back is under way';

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
