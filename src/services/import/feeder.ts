/**
 * Sends the rows of an import in order per learner. Each row counts exactly once, despite rejections and
 * kills.
 * A commit atomically stores the learner's state and the last counted line, the mark. Lines up to the mark
 * are skipped. So a line may count only with or after all earlier lines of its learner. This holds because:
 * 1. A learner belongs to one shard with one group in flight. Rejected rows are retried in order before the
 *    next group.
 * 2. A group is one batch of the engine (compute/lanes.ts), with one commit per learner
 *    (workers/track/track-batch.ts). `checkOrder` verifies this.
 * 3. A row with an unknown outcome (`failed`, or `unavailable` after a lost reply) is retried. The watch on
 *    the learner admits one of two commits. The other finds the mark.
 * A resumed run starts after lines that are all counted. Concurrent runs of an import are safe, because each
 * sends a learner's lines without gaps.
 */
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lanes } from '../../compute/lanes.js';
import type { EventsRequest } from '../../compute/track-task.js';
import type { EventOutcome, TrackEvent } from '../../contracts/answers/track-task.js';
import { ApiError } from '../../errors.js';

export interface FeederOptions {
  readonly tracker: Pick<Lanes, 'track'>;
  readonly importId: string;
  readonly shards: number;
  /** 0 to shards - 1, constant for a learner. Events of a shard share an engine lane. */
  readonly shardOf: (event: TrackEvent) => number;
  /** @param skipped rows that an earlier run counted */
  readonly onCounted: (counted: number, skipped: number) => void;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
}

export type Feeder = ReturnType<typeof createFeeder>;

/** No row was counted for a long time. The import can resume. */
export class StalledError extends Error {}

/** A group is one commit, which blocks Redis. */
const maxGroupRows = 500;
const maxBufferedRows = 20_000;
const minDelayMs = 50;
const maxDelayMs = 1000;
const stallTimeoutMs = 30_000;

interface Shard {
  /** In flight, or to be retried. */
  group: readonly TrackEvent[];
  queued: TrackEvent[];
  sending: Promise<void> | null;
}

export function createFeeder(options: FeederOptions) {
  const { shards: count, shardOf, onCounted, now = () => performance.now() } = options;
  const shards = Array.from({ length: count }, (): Shard => ({ group: [], queued: [], sending: null }));
  const changes = new EventEmitter();
  const stopping = new AbortController();
  const { signal } = stopping;
  let bufferedRows = 0;
  let failure: unknown = null;
  let rejectedSince: number | null = null;

  async function sendAll(shard: Shard): Promise<void> {
    for (let delayMs = minDelayMs; !signal.aborted; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
      if (shard.group.length === 0) {
        shard.group = shard.queued.splice(0, maxGroupRows);
        delayMs = minDelayMs;
      }
      if (shard.group.length === 0) {
        shard.sending = null;
        return;
      }
      shard.group = recordOutcomes(shard.group, await trackGroup(options, shard.group));
      changes.emit('change');
      if (shard.group.length > 0) await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    }
  }

  function recordOutcomes(
    group: readonly TrackEvent[],
    outcomes: readonly EventOutcome[],
  ): readonly TrackEvent[] {
    const rejected = group.filter((_, i) => isRejected(outcomes[i] as EventOutcome));
    if (rejected.length > 0) checkOrder(group, outcomes);
    const skipped = outcomes.filter(({ outcome }) => outcome === 'skipped').length;
    const done = outcomes.length - rejected.length;
    bufferedRows -= done;
    if (done > 0) rejectedSince = null;
    else rejectedSince ??= now();
    onCounted(done - skipped, skipped);
    if (rejectedSince !== null && now() - rejectedSince >= stallTimeoutMs)
      throw new StalledError(
        `No answers were counted for ${stallTimeoutMs / 1000} s: ${findRejectionReason(outcomes)}`,
      );
    return rejected;
  }

  function startSending(shard: Shard): void {
    if (shard.queued.length > 0) shard.sending ??= sendAll(shard).catch(fail);
  }

  function fail(error: unknown): void {
    failure ??= error;
    stopSending();
  }

  function stopSending(): void {
    stopping.abort();
    changes.emit('change');
  }

  async function waitUntil(condition: () => boolean): Promise<void> {
    while (failure === null && !signal.aborted && !condition()) await once(changes, 'change');
    if (failure !== null) throw failure;
  }

  return {
    /** Expects file order. Resolves when there is room for more. @throws StalledError */
    push: (events: readonly TrackEvent[]): Promise<void> => {
      for (const event of events) shards[shardOf(event)]?.queued.push(event);
      bufferedRows += events.length;
      shards.forEach(startSending);
      return waitUntil(() => bufferedRows < maxBufferedRows);
    },
    drain: (): Promise<void> => waitUntil(() => bufferedRows === 0),
    /** Resolves when no row is in flight; `push` and `drain` resolve too. */
    stop: async (): Promise<void> => {
      stopSending();
      await Promise.all(shards.map((shard) => shard.sending));
    },
    findUncountedLine: (): number | null => {
      const lines = shards.flatMap(({ group, queued }) => (group[0] ?? queued[0])?.importLine ?? []);
      return lines.length === 0 ? null : Math.min(...lines);
    },
  };
}

async function trackGroup(
  { tracker, importId }: FeederOptions,
  group: readonly TrackEvent[],
): Promise<readonly EventOutcome[]> {
  const sent: EventsRequest = {
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

const isRejected = ({ outcome }: EventOutcome): boolean => outcome === 'unavailable' || outcome === 'failed';

/** @throws Error if a row was counted after a rejected one of its learner */
function checkOrder(group: readonly TrackEvent[], outcomes: readonly EventOutcome[]): void {
  const rejectedLearners = new Set<string>();
  group.forEach(({ userId, importLine }, i) => {
    const tracked = outcomes[i] as EventOutcome;
    if (isRejected(tracked)) rejectedLearners.add(userId);
    else if (tracked.outcome === 'counted' && rejectedLearners.has(userId)) {
      throw new Error(
        `line ${importLine} was counted although an earlier line of the same learner was rejected`,
      );
    }
  });
}

/** Omits the advice for API callers after the semicolon. */
const findRejectionReason = (outcomes: readonly EventOutcome[]): string =>
  outcomes.find(({ outcome }) => outcome === 'unavailable')?.data.split(';')[0] ??
  'the engine does not respond';
