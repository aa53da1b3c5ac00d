import { type ApiError, unavailable } from '../errors.js';

export interface BatcherOptions<Item, Result> {
  /** Lanes work side by side. */
  readonly lanes: number;
  /** Batches of one lane that may be away at the same time; with one, what goes through the lane keeps its order. */
  readonly away: number;
  /** Whether an item may share the batch of the first one. */
  readonly together: (first: Item, item: Item) => boolean;
  /** In what the amounts are in: bytes, say. */
  readonly weightOf: (item: Item) => number;
  /** Most of one batch, and most that may wait in one lane. A batch has one item at least, however large. */
  readonly maxBatch: Amount;
  readonly maxWaiting: Amount;
  /**
   * Nobody joins a lane whose first item has waited longer than `ms`, unless less than `least` waits there: what is
   * taken is then done in about that time, however slow the work is.
   */
  readonly patience: { readonly ms: number; readonly least: Amount };
  /** Milliseconds on a clock that only goes forward. */
  readonly now?: () => number;
  /** What is told where a lane is full. */
  readonly refusal: string;
  /** Does the work of one batch; must settle in bounded time. Where it rejects, all items of the batch do. */
  readonly run: (items: readonly Item[], lane: number) => Promise<readonly (Result | Error)[]>;
}

export interface Amount {
  readonly items: number;
  readonly weight: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane<Item, Result> {
  readonly number: number;
  waiting: Waiting<Item, Result>[];
  waitingWeight: number;
  /** Batches that are away or about to go. */
  away: number;
}

export interface Batcher<Item, Result> {
  /** @throws the item's error; ApiError UNAVAILABLE where the lane is full or the batcher has stopped */
  submit(lane: number, item: Item): Promise<Result>;
  /** The refusal where every lane is full: submitting anything would come to the same, for more. */
  full(): ApiError | null;
  /** Items that wait. */
  waiting(): number;
  /** Refuses what waits and what comes; the batches that are away are still told. */
  stop(): void;
}

const closing = () => unavailable('The service is stopping; try again later');

/**
 * Gathers items into micro-batches: while as many as may be are away the next one grows, so the batches are as large
 * as the load is heavy, and nobody waits for a timer.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  const lanes = Array.from(
    { length: options.lanes },
    (_, number): Lane<Item, Result> => ({ number, waiting: [], waitingWeight: 0, away: 0 }),
  );
  const { now = () => performance.now() } = options;
  // Made once: with a stack of its own for each, refusing cost more than accepting.
  const refusal = unavailable(options.refusal);
  let stopped = false;
  return {
    submit: (number, item) =>
      new Promise((resolve, reject) => {
        const lane = lanes[number] as Lane<Item, Result>;
        const since = now();
        if (stopped) reject(closing());
        else if (isFull(options, lane, since)) reject(refusal);
        else enqueue(options, lane, { item, since, resolve, reject });
      }),
    full: () => {
      const since = now();
      return lanes.every((lane) => isFull(options, lane, since)) ? refusal : null;
    },
    waiting: () => lanes.reduce((sum, lane) => sum + lane.waiting.length, 0),
    stop: () => {
      stopped = true;
      const refused = lanes.flatMap((lane) => lane.waiting.splice(0));
      for (const { reject } of refused) reject(closing());
    },
  };
}

function isFull<Item, Result>(
  { maxWaiting, patience }: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  now: number,
): boolean {
  if (holds(lane, maxWaiting)) return true;
  const [first] = lane.waiting;
  return first !== undefined && now - first.since > patience.ms && holds(lane, patience.least);
}

const holds = <Item, Result>({ waiting, waitingWeight }: Lane<Item, Result>, amount: Amount): boolean =>
  waiting.length >= amount.items || waitingWeight >= amount.weight;

function enqueue<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  waiting: Waiting<Item, Result>,
): void {
  lane.waiting.push(waiting);
  lane.waitingWeight += options.weightOf(waiting.item);
  if (lane.away >= options.away) return;
  lane.away += 1;
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
  lane.away -= 1;
}

function settle<Item, Result>({ resolve, reject }: Waiting<Item, Result>, result: Result | Error): void {
  if (result instanceof Error) reject(result);
  else resolve(result);
}

/** The longest run of waiting items that may go together. */
function takeBatch<Item, Result>(
  { together, weightOf, maxBatch }: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Waiting<Item, Result>[] {
  const { waiting } = lane;
  const first = (waiting[0] as Waiting<Item, Result>).item;
  let weight = weightOf(first);
  let length = 1;
  for (; length < Math.min(waiting.length, maxBatch.items); length++) {
    const { item } = waiting[length] as Waiting<Item, Result>;
    if (!together(first, item) || weight + weightOf(item) > maxBatch.weight) break;
    weight += weightOf(item);
  }
  lane.waitingWeight -= weight;
  return waiting.splice(0, length);
}
