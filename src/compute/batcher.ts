import type { TrackEvent, TrackReply, TrackTask } from '../contracts/tasks.js';
import type { AttemptTracker, Tracked, TrackMode } from '../services/ports.js';

export interface BatcherOptions {
  /** Lanes work side by side; a learner always has the same one, and a lane has one batch in flight. */
  readonly lanes: number;
  readonly laneOf: (event: TrackEvent) => number;
  /** Most events in one batch. */
  readonly maxBatch: number;
  /** Most events that may wait in one lane. */
  readonly maxWaiting: number;
  /** Counts one batch; must settle in bounded time. */
  readonly run: (task: TrackTask) => Promise<TrackReply | { readonly unavailable: string }>;
  /** Told of a batch that failed for a reason that callers must not see. */
  readonly onFailure: (error: unknown) => void;
}

interface Waiting {
  readonly event: TrackEvent;
  readonly place: number;
  readonly mode: TrackMode;
  readonly done: (place: number, tracked: Tracked) => void;
}

interface Lane {
  waiting: Waiting[];
  busy: boolean;
}

const full: Tracked = {
  outcome: 'unavailable',
  data: 'Too many answers wait to be counted; try again later',
};
const closing: Tracked = { outcome: 'unavailable', data: 'The service is stopping; try again later' };
const failed: Tracked = { outcome: 'failed', data: '' };

export interface Batcher extends AttemptTracker {
  readonly waiting: () => number;
  /** Refuses what waits and what comes; the batches that are away are still told. */
  readonly stop: () => void;
}

/**
 * Gathers answers into micro-batches, one in flight per lane: while a batch is away the next one grows, so the
 * batches are as large as the load is heavy, and nobody waits for a timer.
 */
export function createBatcher(options: BatcherOptions): Batcher {
  const lanes = Array.from({ length: options.lanes }, (): Lane => ({ waiting: [], busy: false }));
  let refusal: Tracked | null = null;
  return {
    waiting: () => lanes.reduce((sum, lane) => sum + lane.waiting.length, 0),
    track: (events, mode, done) => {
      events.forEach((event, place) => {
        const lane = lanes[options.laneOf(event)] as Lane;
        if (refusal !== null) done(place, refusal);
        else if (lane.waiting.length >= options.maxWaiting) done(place, full);
        else enqueue(options, lane, { event, place, mode, done });
      });
    },
    stop: () => {
      refusal = closing;
      const refused = lanes.flatMap((lane) => lane.waiting.splice(0));
      for (const { place, done } of refused) done(place, closing);
    },
  };
}

function enqueue(options: BatcherOptions, lane: Lane, waiting: Waiting): void {
  lane.waiting.push(waiting);
  if (lane.busy) return;
  lane.busy = true;
  // Not at once: what the sockets deliver in this turn of the event loop shares the batch.
  setImmediate(drain, options, lane);
}

async function drain(options: BatcherOptions, lane: Lane): Promise<void> {
  while (lane.waiting.length > 0) {
    const batch = takeBatch(lane, options.maxBatch);
    const tracked = await runBatch(options, batch);
    batch.forEach((waiting, i) => {
      waiting.done(waiting.place, tracked[i] ?? failed);
    });
  }
  lane.busy = false;
}

/** The longest run of waiting events that are counted the same way. */
function takeBatch(lane: Lane, maxBatch: number): Waiting[] {
  const mode = lane.waiting[0]?.mode;
  const other = lane.waiting.findIndex((waiting) => waiting.mode !== mode);
  return lane.waiting.splice(0, Math.min(maxBatch, other < 0 ? lane.waiting.length : other));
}

async function runBatch(options: BatcherOptions, batch: readonly Waiting[]): Promise<Tracked[]> {
  const mode = batch[0]?.mode as TrackMode;
  try {
    const reply = await options.run({ ...mode, events: JSON.stringify(batch.map(({ event }) => event)) });
    if ('unavailable' in reply) return batch.map(() => ({ outcome: 'unavailable', data: reply.unavailable }));
    const causes = reply.data.filter((_, i) => reply.outcomes[i] === 'failed');
    for (const cause of new Set(causes)) options.onFailure(new Error(cause));
    return reply.outcomes.map((outcome, i) => ({ outcome, data: reply.data[i] as string }));
  } catch (error) {
    options.onFailure(error);
    return batch.map(() => failed);
  }
}
