import { unavailable } from '../errors.js';

export interface BatcherOptions<Item, Result> {
  /** Lanes work side by side, each with one batch in flight: what goes through one lane keeps its order. */
  readonly lanes: number;
  /** Whether an item may share the batch of the first one. */
  readonly together: (first: Item, item: Item) => boolean;
  readonly bytesOf: (item: Item) => number;
  /** Most of one batch, and most that may wait in one lane. A batch has one item at least, however large. */
  readonly maxBatch: Amount;
  readonly maxWaiting: Amount;
  /** Does the work of one batch; must settle in bounded time. Where it rejects, all items of the batch do. */
  readonly run: (items: readonly Item[], lane: number) => Promise<readonly (Result | Error)[]>;
}

export interface Amount {
  readonly items: number;
  readonly bytes: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane<Item, Result> {
  readonly number: number;
  waiting: Waiting<Item, Result>[];
  waitingBytes: number;
  busy: boolean;
}

export interface Batcher<Item, Result> {
  /** @throws the item's error; ApiError UNAVAILABLE where the lane is full or the batcher has stopped */
  submit(lane: number, item: Item): Promise<Result>;
  /** Items that wait. */
  waiting(): number;
  /** Refuses what waits and what comes; the batches that are away are still told. */
  stop(): void;
}

const closing = () => unavailable('The service is stopping; try again later');

/**
 * Gathers items into micro-batches, one in flight per lane: while a batch is away the next one grows, so the batches
 * are as large as the load is heavy, and nobody waits for a timer.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  const lanes = Array.from(
    { length: options.lanes },
    (_, number): Lane<Item, Result> => ({ number, waiting: [], waitingBytes: 0, busy: false }),
  );
  let stopped = false;
  return {
    submit: (number, item) =>
      new Promise((resolve, reject) => {
        const lane = lanes[number] as Lane<Item, Result>;
        if (stopped) reject(closing());
        else if (isFull(options, lane)) reject(full());
        else enqueue(options, lane, { item, resolve, reject });
      }),
    waiting: () => lanes.reduce((sum, lane) => sum + lane.waiting.length, 0),
    stop: () => {
      stopped = true;
      const refused = lanes.flatMap((lane) => lane.waiting.splice(0));
      for (const { reject } of refused) reject(closing());
    },
  };
}

const full = () => unavailable('Too many answers wait to be counted; try again later');

const isFull = <Item, Result>(
  { maxWaiting }: BatcherOptions<Item, Result>,
  { waiting, waitingBytes }: Lane<Item, Result>,
): boolean => waiting.length >= maxWaiting.items || waitingBytes >= maxWaiting.bytes;

function enqueue<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  waiting: Waiting<Item, Result>,
): void {
  lane.waiting.push(waiting);
  lane.waitingBytes += options.bytesOf(waiting.item);
  if (lane.busy) return;
  lane.busy = true;
  // Not at once: what the sockets deliver in this turn of the event loop shares the batch.
  setImmediate(drain, options, lane);
}

async function drain<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Promise<void> {
  while (lane.waiting.length > 0) {
    const batch = takeBatch(options, lane);
    try {
      const results = await options.run(
        batch.map(({ item }) => item),
        lane.number,
      );
      batch.forEach((waiting, i) => {
        settle(waiting, results[i] as Result | Error);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
  lane.busy = false;
}

function settle<Item, Result>({ resolve, reject }: Waiting<Item, Result>, result: Result | Error): void {
  if (result instanceof Error) reject(result);
  else resolve(result);
}

/** The longest run of waiting items that may go together. */
function takeBatch<Item, Result>(
  { together, bytesOf, maxBatch }: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Waiting<Item, Result>[] {
  const { waiting } = lane;
  const first = (waiting[0] as Waiting<Item, Result>).item;
  let bytes = bytesOf(first);
  let length = 1;
  for (; length < Math.min(waiting.length, maxBatch.items); length++) {
    const { item } = waiting[length] as Waiting<Item, Result>;
    if (!together(first, item) || bytes + bytesOf(item) > maxBatch.bytes) break;
    bytes += bytesOf(item);
  }
  lane.waitingBytes -= bytes;
  return waiting.splice(0, length);
}
