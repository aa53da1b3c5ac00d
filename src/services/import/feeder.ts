/**
 * Sends the rows of an import through the engine: in order per learner, each counted exactly once, whatever is
 * refused or killed in between.
 *
 * How that is sure. A commit keeps, with the learner's state and in the same atomic step, the last line that was
 * counted for the learner (the mark), and lines at or below the mark are skipped. So no line counts twice. A line
 * would be lost if a later line of its learner were counted while it is not, for then the mark has passed it. The
 * invariant is therefore: when a line is counted, all earlier lines of its learner are counted, or are in the same
 * commit. It holds because
 * 1. a learner belongs to one shard, and a shard has one group under way; the next group is sent only when
 *    every row of this one is counted or skipped. Refused rows are sent again, in order, before anything else;
 * 2. a group is one batch of the engine, so a learner's rows in it are one commit: all or nothing. It is one batch
 *    because an import's request never shares a task (compute/lanes.ts) and a worker never splits it
 *    (workers/track/tracking.ts). Were that ever broken, `checkOrder` stops the import instead of losing rows in silence;
 * 3. a row whose outcome is not known (`failed`, or `unavailable` because an answer of Redis was lost) is sent
 *    again like a refused one. If its commit took place, or still does later, the watch on the learner lets only one
 *    of the two through (store/learners/watched-learners.ts), and the other one finds the mark.
 * A run that starts again does so at a position before which everything is counted, so 1 to 3 hold for it too;
 * even two runs of one import at once, each sending a learner's lines without gaps, cannot break the invariant.
 */

import type { Lanes } from '../../compute/lanes.js';
import type { SentEvents } from '../../compute/track-task.js';
import type { EventOutcome, TrackEvent } from '../../contracts/tasks.js';
import { ApiError } from '../../errors.js';

export interface FeederOptions {
  readonly tracker: Pick<Lanes, 'track'>;
  /** Names the marks of this import. */
  readonly importId: string;
  readonly shards: number;
  /** 0 to shards - 1; the same for all rows of a learner, and events of one shard share an engine lane. */
  readonly shardOf: (event: TrackEvent) => number;
  /** Told how many rows were counted now, and how many had been before. */
  readonly settled: (counted: number, skipped: number) => void;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
}

export interface Feeder {
  /** Takes rows in the order of the file; resolves when there is room for more. @throws StalledError */
  push(events: readonly TrackEvent[]): Promise<void>;
  /** Resolves when every row is counted. @throws StalledError */
  drain(): Promise<void>;
  /** Sends nothing more; resolves when nothing is under way. `push` and `drain` resolve too. */
  stop(): Promise<void>;
  /** First line that is not known to be counted, or null if there is none. */
  firstOpenLine(): number | null;
}

/** Nothing was counted for a long time; the import can be resumed. */
export class StalledError extends Error {}

/** One step of Redis (see 2. above), which does nothing else meanwhile. */
const groupRows = 500;
/** Rows in memory, waiting or under way: what constant memory means here. */
const heldRows = 20_000;
const firstDelayMs = 50;
const lastDelayMs = 1000;
/** Refusals without a single success end the import after this long. */
const giveUpMs = 30_000;

interface Shard {
  /** Under way, or refused and waiting for their next try. */
  group: readonly TrackEvent[];
  waiting: TrackEvent[];
  delayMs: number;
  retry: NodeJS.Timeout | null;
}

export function createFeeder(options: FeederOptions): Feeder {
  const shards = Array.from(
    { length: options.shards },
    (): Shard => ({ group: [], waiting: [], delayMs: firstDelayMs, retry: null }),
  );
  const changes = createChanges();
  let held = 0;
  let underWay = 0;
  let stopping = false;
  let failure: Error | null = null;
  let refusedSince: number | null = null;

  function pump(shard: Shard): void {
    if (shard.group.length > 0 || shard.waiting.length === 0 || stopping) return;
    shard.group = shard.waiting.splice(0, groupRows);
    send(shard);
  }

  function send(shard: Shard): void {
    underWay++;
    void trackGroup(options, shard.group).then((outcomes) => settle(shard, outcomes));
  }

  function settle(shard: Shard, outcomes: readonly EventOutcome[]): void {
    underWay--;
    const refused = shard.group.filter((_, i) => isRefused(outcomes[i] as EventOutcome));
    try {
      if (refused.length > 0) checkOrder(shard.group, outcomes);
      note(outcomes, refused.length);
    } catch (error) {
      fail(error as Error);
    }
    shard.group = refused;
    if (refused.length === 0) advance(shard);
    else repeatLater(shard);
    changes.notify();
  }

  function note(outcomes: readonly EventOutcome[], refused: number): void {
    const skipped = outcomes.filter(({ outcome }) => outcome === 'skipped').length;
    const counted = outcomes.length - skipped - refused;
    held -= counted + skipped;
    if (counted + skipped > 0) refusedSince = null;
    else refusedSince ??= options.now();
    options.settled(counted, skipped);
    if (refusedSince !== null && options.now() - refusedSince >= giveUpMs) {
      throw new StalledError(`Nothing could be counted for ${giveUpMs / 1000} s: ${reasonOf(outcomes)}`);
    }
  }

  function advance(shard: Shard): void {
    shard.delayMs = firstDelayMs;
    pump(shard);
  }

  function repeatLater(shard: Shard): void {
    if (stopping) return;
    shard.retry = setTimeout(() => {
      shard.retry = null;
      send(shard);
    }, shard.delayMs);
    shard.delayMs = Math.min(2 * shard.delayMs, lastDelayMs);
  }

  function fail(error: Error): void {
    failure ??= error;
    halt();
  }

  function halt(): void {
    stopping = true;
    for (const { retry } of shards) if (retry !== null) clearTimeout(retry);
    changes.notify();
  }

  async function until(condition: () => boolean): Promise<void> {
    while (failure === null && !stopping && !condition()) await changes.next();
    if (failure !== null) throw failure;
  }

  return {
    push: (events) => {
      for (const event of events) shards[options.shardOf(event)]?.waiting.push(event);
      held += events.length;
      shards.forEach(pump);
      return until(() => held < heldRows);
    },
    drain: () => until(() => held === 0),
    stop: async () => {
      halt();
      while (underWay > 0) await changes.next();
    },
    firstOpenLine: () => firstLine(shards.map(({ group, waiting }) => group[0] ?? waiting[0])),
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

function firstLine(firsts: readonly (TrackEvent | undefined)[]): number | null {
  const lines = firsts.flatMap((event) => (event === undefined ? [] : [event.importLine ?? 0]));
  return lines.length === 0 ? null : Math.min(...lines);
}

/** Wakes everybody who waits for something to change. */
function createChanges(): { next(): Promise<void>; notify(): void } {
  let waiting: (() => void)[] = [];
  return {
    next: () => new Promise((resolve) => waiting.push(resolve)),
    notify: () => {
      const woken = waiting;
      waiting = [];
      for (const wake of woken) wake();
    },
  };
}
