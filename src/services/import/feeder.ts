/**
 * Sends the rows of an import through the engine: in order per learner, each counted exactly once, whatever is rejected or
 * killed in between.
 *
 * A commit stores, in the same atomic step as the learner's state, the last counted line of the learner (the mark); lines
 * at or below the mark are skipped. So no line counts twice. A line would be lost if a later line of its learner were
 * counted first. The invariant: when a line is counted, all earlier lines of its learner are counted, or are in the same
 * commit. It holds because
 * 1. a learner belongs to one shard, and a shard has one group in flight. The next group is sent when every row of this one
 *    is counted or skipped; rejected rows are retried first, in order;
 * 2. a group is one batch of the engine, so a learner's rows in it are one commit: an import's request never shares a task
 *    (compute/lanes.ts), and a worker never splits it (workers/track/tracking.ts). `checkOrder` verifies this;
 * 3. a row with an unknown outcome (`failed`, or `unavailable` because a reply of Redis was lost) is retried like a
 *    rejected one. The watch on the learner lets only one of two commits through (store/learners/watched-learners.ts), and
 *    the other one finds the mark.
 *
 * A resumed run starts at a position before which everything is counted, so 1 to 3 hold for it too. Even two concurrent
 * runs of one import, each sending a learner's lines without gaps, cannot break the invariant.
 */
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lanes } from '../../compute/lanes.js';
import type { SentEvents } from '../../compute/track-task.js';
import type { EventOutcome, TrackEvent } from '../../contracts/tasks.js';
import { ApiError } from '../../errors.js';

export interface FeederOptions {
  readonly tracker: Pick<Lanes, 'track'>;
  /** Names the marks of this import. */
  readonly importId: string;
  readonly shards: number;
  /** 0 to shards - 1; the same for all rows of a learner. Events of one shard share an engine lane. */
  readonly shardOf: (event: TrackEvent) => number;
  /** Called with the rows that were counted now, and that an earlier run had counted. */
  readonly settled: (counted: number, skipped: number) => void;
  /** Monotonic clock in milliseconds; `performance.now` except in tests. */
  readonly now?: () => number;
}

export type Feeder = ReturnType<typeof createFeeder>;

/** Nothing was counted for a long time; the import can be resumed. */
export class StalledError extends Error {}

/** One step of Redis (see 2. above), which blocks everything else. */
const groupRows = 500;
/** Limit of rows in memory, waiting or in flight. */
const maxHeldRows = 20_000;
const minDelayMs = 50;
const maxDelayMs = 1000;
/** Milliseconds without a counted row after which the import ends. */
const giveUpMs = 30_000;

interface Shard {
  /** In flight, or refused and waiting for their next try. */
  group: readonly TrackEvent[];
  waiting: TrackEvent[];
  /** Sends what waits; null as soon as nothing does. */
  work: Promise<void> | null;
}

export function createFeeder(options: FeederOptions) {
  const { shards: count, shardOf, settled, now = () => performance.now() } = options;
  const shards = Array.from({ length: count }, (): Shard => ({ group: [], waiting: [], work: null }));
  const changes = new EventEmitter();
  const stopping = new AbortController();
  const { signal } = stopping;
  let held = 0;
  let failure: unknown = null;
  let refusedSince: number | null = null;

  async function sendAll(shard: Shard): Promise<void> {
    for (let delayMs = minDelayMs; !signal.aborted; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
      if (shard.group.length === 0) {
        shard.group = shard.waiting.splice(0, groupRows);
        delayMs = minDelayMs;
      }
      if (shard.group.length === 0) {
        shard.work = null;
        return;
      }
      shard.group = settle(shard.group, await trackGroup(options, shard.group));
      changes.emit('change');
      if (shard.group.length > 0) await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** @returns the refused rows. @throws StalledError, and what `checkOrder` throws */
  function settle(group: readonly TrackEvent[], outcomes: readonly EventOutcome[]): readonly TrackEvent[] {
    const refused = group.filter((_, i) => isRefused(outcomes[i] as EventOutcome));
    if (refused.length > 0) checkOrder(group, outcomes);
    const skipped = outcomes.filter(({ outcome }) => outcome === 'skipped').length;
    const done = outcomes.length - refused.length;
    held -= done;
    if (done > 0) refusedSince = null;
    else refusedSince ??= now();
    settled(done - skipped, skipped);
    if (refusedSince !== null && now() - refusedSince >= giveUpMs)
      throw new StalledError(`Nothing could be counted for ${giveUpMs / 1000} s: ${reasonOf(outcomes)}`);
    return refused;
  }

  function work(shard: Shard): void {
    if (shard.waiting.length > 0) shard.work ??= sendAll(shard).catch(fail);
  }

  function fail(error: unknown): void {
    failure ??= error;
    halt();
  }

  function halt(): void {
    stopping.abort();
    changes.emit('change');
  }

  async function until(condition: () => boolean): Promise<void> {
    while (failure === null && !signal.aborted && !condition()) await once(changes, 'change');
    if (failure !== null) throw failure;
  }

  return {
    /** Takes rows in the order of the file; resolves when there is room for more. @throws StalledError */
    push: (events: readonly TrackEvent[]): Promise<void> => {
      for (const event of events) shards[shardOf(event)]?.waiting.push(event);
      held += events.length;
      shards.forEach(work);
      return until(() => held < maxHeldRows);
    },
    /** Resolves when every row is counted. @throws StalledError */
    drain: (): Promise<void> => until(() => held === 0),
    /** Sends nothing more; resolves when nothing is in flight. `push` and `drain` resolve too. */
    stop: async (): Promise<void> => {
      halt();
      await Promise.all(shards.map((shard) => shard.work));
    },
    /** First line that is not known to be counted, or null if there is none. */
    firstOpenLine: (): number | null => {
      const lines = shards.flatMap(({ group, waiting }) => (group[0] ?? waiting[0])?.importLine ?? []);
      return lines.length === 0 ? null : Math.min(...lines);
    },
  };
}

/** What became of the rows of a group; never throws. */
async function trackGroup(
  { tracker, importId }: FeederOptions,
  group: readonly TrackEvent[],
): Promise<readonly EventOutcome[]> {
  const sent: SentEvents = {
    form: 'import',
    tenant: group[0]?.tenant ?? '',
    body: Buffer.from(JSON.stringify(group)),
    idempotencyKey: null,
    receivedAt: 0,
  };
  try {
    return await tracker.track(sent, importId);
  } catch (error) {
    const outcome = error instanceof ApiError && error.code === 'UNAVAILABLE' ? 'unavailable' : 'failed';
    const data = error instanceof Error ? error.message : String(error);
    return group.map(() => ({ outcome, data }));
  }
}

const isRefused = ({ outcome }: EventOutcome): boolean => outcome === 'unavailable' || outcome === 'failed';

/** @throws Error if a row was counted after an earlier one of its learner was refused, or has an odd outcome */
function checkOrder(group: readonly TrackEvent[], outcomes: readonly EventOutcome[]): void {
  const refused = new Set<string>();
  group.forEach(({ userId, importLine }, i) => {
    const tracked = outcomes[i] as EventOutcome;
    if (isRefused(tracked)) refused.add(userId);
    else if (tracked.outcome === 'counted' && refused.has(userId)) {
      throw new Error(`line ${importLine} was counted although an earlier one of its learner was refused`);
    }
  });
}

/** Without the advice after the semicolon, which is for the API's callers. */
const reasonOf = (outcomes: readonly EventOutcome[]): string =>
  outcomes.find(({ outcome }) => outcome === 'unavailable')?.data.split(';')[0] ??
  'the engine does not answer';
