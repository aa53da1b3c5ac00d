import { type ApiError, unavailable } from '../errors.js';

export interface BatcherOptions<Item, Result> {
  /** Lanes work side by side. */
  readonly lanes: number;
  /** Batches of one lane that may be away at the same time; with one, what goes through the lane keeps its order. */
  readonly away: number;
  /** Whether an item may share the batch of the first one. */
  readonly together: (first: Item, item: Item) => boolean;
  /** Whose it is: tenants take turns, and what one of them sent keeps its order. */
  readonly tenantOf: (item: Item) => string;
  /** In what the amounts are in: bytes, say. */
  readonly weightOf: (item: Item) => number;
  /** Most of one batch. It has one item at least, however large. */
  readonly maxBatch: Amount;
  /** Most that may wait in one lane; of one tenant half as much. */
  readonly maxWaiting: Amount;
  /**
   * No tenant adds to a lane where its first item has waited longer than `ms`, unless less than `least` of it waits there:
   * what is taken is then done in about that time, however slow the work is.
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

/** What waits of one tenant in one lane. */
interface Queue<Item, Result> {
  waiting: Waiting<Item, Result>[];
  weight: number;
  /** Weight that went away before it; one that is new begins where the one is that went last. */
  served: number;
}

interface Lane<Item, Result> {
  readonly number: number;
  /** By tenant; none is empty. */
  readonly queues: Map<string, Queue<Item, Result>>;
  items: number;
  weight: number;
  /** What the tenant that went last had been served. */
  clock: number;
  /** Batches that are away or about to go. */
  away: number;
}

export interface Batcher<Item, Result> {
  /** @throws the item's error; ApiError UNAVAILABLE where the lane is full or the batcher has stopped */
  submit(lane: number, item: Item): Promise<Result>;
  /** The refusal where every lane is full for the tenant: submitting anything would come to the same, for more. */
  full(tenant: string): ApiError | null;
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
    (_, number): Lane<Item, Result> => ({
      ...{ number, queues: new Map(), items: 0, weight: 0 },
      ...{ clock: 0, away: 0 },
    }),
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
        else if (isFull(options, lane, options.tenantOf(item), since)) reject(refusal);
        else enqueue(options, lane, { item, since, resolve, reject });
      }),
    full: (tenant) => {
      const since = now();
      return lanes.every((lane) => isFull(options, lane, tenant, since)) ? refusal : null;
    },
    waiting: () => lanes.reduce((sum, { items }) => sum + items, 0),
    stop: () => {
      stopped = true;
      const queues = lanes.flatMap((lane) => [...lane.queues.values()]);
      for (const lane of lanes) {
        lane.queues.clear();
        Object.assign(lane, { items: 0, weight: 0 });
      }
      for (const { reject } of queues.flatMap(({ waiting }) => waiting)) reject(closing());
    },
  };
}

function isFull<Item, Result>(
  { maxWaiting, patience }: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  tenant: string,
  now: number,
): boolean {
  if (holds(lane, maxWaiting)) return true;
  const queue = lane.queues.get(tenant);
  if (queue === undefined) return false;
  const own = { items: queue.waiting.length, weight: queue.weight };
  if (holds(own, { items: maxWaiting.items / 2, weight: maxWaiting.weight / 2 })) return true;
  const [first] = queue.waiting;
  return first !== undefined && now - first.since > patience.ms && holds(own, patience.least);
}

const holds = ({ items, weight }: Amount, amount: Amount): boolean =>
  items >= amount.items || weight >= amount.weight;

function enqueue<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  waiting: Waiting<Item, Result>,
): void {
  const tenant = options.tenantOf(waiting.item);
  const weight = options.weightOf(waiting.item);
  const queue = lane.queues.get(tenant) ?? { waiting: [], weight: 0, served: lane.clock };
  lane.queues.set(tenant, queue);
  queue.waiting.push(waiting);
  queue.weight += weight;
  lane.items += 1;
  lane.weight += weight;
  if (lane.away >= options.away) return;
  lane.away += 1;
  // Not at once: what the sockets deliver in this turn of the event loop shares the batch.
  setImmediate(drain, options, lane);
}

async function drain<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Promise<void> {
  while (lane.queues.size > 0) {
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

/** Of the tenant that was served least so far what may go together, and with it what may of the others. */
function takeBatch<Item, Result>(
  { together, weightOf, maxBatch }: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Waiting<Item, Result>[] {
  const [first, ...others] = leastFirst(lane);
  const batch: Waiting<Item, Result>[] = [];
  let weight = 0;
  const fits = (item: Item): boolean => {
    const [head] = batch;
    if (head === undefined) return true;
    return (
      batch.length < maxBatch.items && weight + weightOf(item) <= maxBatch.weight && together(head.item, item)
    );
  };
  lane.clock = first[1].served;
  for (const [tenant, queue] of [first, ...others]) {
    const before = weight;
    let taken = 0;
    for (const waiting of queue.waiting) {
      if (!fits(waiting.item)) break;
      batch.push(waiting);
      weight += weightOf(waiting.item);
      taken += 1;
    }
    queue.waiting.splice(0, taken);
    queue.weight -= weight - before;
    queue.served += weight - before;
    if (queue.waiting.length === 0) lane.queues.delete(tenant);
  }
  lane.items -= batch.length;
  lane.weight -= weight;
  return batch;
}

type Named<Item, Result> = [tenant: string, queue: Queue<Item, Result>];

/** @param lane where something waits */
function leastFirst<Item, Result>({
  queues,
}: Lane<Item, Result>): [Named<Item, Result>, ...Named<Item, Result>[]] {
  const named = [...queues];
  if (named.length > 1) named.sort(([, a], [, b]) => a.served - b.served);
  return named as [Named<Item, Result>, ...Named<Item, Result>[]];
}
