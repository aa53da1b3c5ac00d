import { type ApiError, unavailable } from '../errors.js';
import { createFairLine, type FairLine, type Standing } from '../services/fair-line.js';

export interface BatcherOptions<Item, Result> {
  /** Lanes work side by side. */
  readonly lanes: number;
  /** Whether an item may share the batch of the first one. */
  readonly together: (first: Item, item: Item) => boolean;
  /**
   * Whether an item may go while one of another tenant is away. A lane has two batches away at most, and never two with
   * items of one tenant, so that what it sends through a lane keeps its order.
   */
  readonly beside: (away: Item, item: Item) => boolean;
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

interface Waiting<Item, Result> extends Standing, Settled<Result> {
  readonly item: Item;
  readonly since: number;
}

interface Lane<Item, Result> {
  readonly number: number;
  readonly line: FairLine<Waiting<Item, Result>>;
  readonly away: Set<readonly Waiting<Item, Result>[]>;
  /** Looked at again in this turn of the event loop. */
  isDue: boolean;
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
    (_, number): Lane<Item, Result> => ({ number, line: createFairLine(), away: new Set(), isDue: false }),
  );
  const { now = () => performance.now() } = options;
  // Made once: with a stack of its own for each, refusing cost more than accepting.
  const refusal = unavailable(options.refusal);
  let stopped = false;
  return {
    submit: (number, item) =>
      new Promise((resolve, reject) => {
        const lane = lanes[number] as Lane<Item, Result>;
        const tenant = options.tenantOf(item);
        const since = now();
        if (stopped) reject(closing());
        else if (isFull(options, lane, tenant, since)) reject(refusal);
        else enqueue(options, lane, { tenant, weight: options.weightOf(item), item, since, resolve, reject });
      }),
    full: (tenant) => {
      const since = now();
      return lanes.every((lane) => isFull(options, lane, tenant, since)) ? refusal : null;
    },
    waiting: () => lanes.reduce((sum, { line }) => sum + line.all.items, 0),
    stop: () => {
      stopped = true;
      for (const { reject } of lanes.flatMap(({ line }) => line.takeAll(() => true))) reject(closing());
    },
  };
}

function isFull<Item, Result>(
  { maxWaiting, patience }: BatcherOptions<Item, Result>,
  { line }: Lane<Item, Result>,
  tenant: string,
  now: number,
): boolean {
  if (holds(line.all, maxWaiting)) return true;
  const { waiting, weight } = line.of(tenant);
  const own = { items: waiting.length, weight };
  if (holds(own, { items: maxWaiting.items / 2, weight: maxWaiting.weight / 2 })) return true;
  const [first] = waiting;
  return first !== undefined && now - first.since > patience.ms && holds(own, patience.least);
}

const holds = ({ items, weight }: Amount, amount: Amount): boolean =>
  items >= amount.items || weight >= amount.weight;

function enqueue<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
  waiting: Waiting<Item, Result>,
): void {
  lane.line.add(waiting);
  if (lane.isDue || !mayGo(options, lane, waiting)) return;
  lane.isDue = true;
  // Not at once: what the sockets deliver in this turn of the event loop shares the batch.
  setImmediate(() => {
    lane.isDue = false;
    send(options, lane);
  });
}

/** Whether what is away leaves room for it. */
function mayGo<Item, Result>(
  { beside }: BatcherOptions<Item, Result>,
  { away }: Lane<Item, Result>,
  { tenant, item }: Waiting<Item, Result>,
): boolean {
  const [batch] = away;
  if (batch === undefined) return true;
  const [first] = batch as readonly [Waiting<Item, Result>];
  return away.size === 1 && beside(first.item, item) && !batch.some((other) => other.tenant === tenant);
}

/** Sends what may go, and goes on when it has come back. */
function send<Item, Result>(options: BatcherOptions<Item, Result>, lane: Lane<Item, Result>): void {
  for (;;) {
    const batch = takeBatch(options, lane);
    if (batch.length === 0) return;
    lane.away.add(batch);
    const items = batch.map(({ item }) => item);
    void settleAll(batch, () => options.run(items, lane.number)).then(() => {
      lane.away.delete(batch);
      send(options, lane);
    });
  }
}

/** Of the tenant that was given least so far what may go together, and with it what may of the others. */
function takeBatch<Item, Result>(
  options: BatcherOptions<Item, Result>,
  lane: Lane<Item, Result>,
): Waiting<Item, Result>[] {
  const { together, maxBatch } = options;
  let head: Item | undefined;
  let items = 0;
  let weight = 0;
  const fits = (next: Waiting<Item, Result>): boolean =>
    head === undefined ||
    (items < maxBatch.items && weight + next.weight <= maxBatch.weight && together(head, next.item));
  return lane.line.takeAll((next) => {
    if (!fits(next) || !mayGo(options, lane, next)) return false;
    head ??= next.item;
    items += 1;
    weight += next.weight;
    return true;
  });
}

/** Who waits for a result. */
export interface Settled<Result> {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells each who waits the result of theirs; where the work fails, all of them. */
export async function settleAll<Result>(
  waiting: readonly Settled<Result>[],
  work: () => Promise<readonly (Result | Error)[]>,
): Promise<void> {
  try {
    const results = await work();
    waiting.forEach(({ resolve, reject }, i) => {
      const result = results[i] as Result | Error;
      if (result instanceof Error) reject(result);
      else resolve(result);
    });
  } catch (error) {
    for (const { reject } of waiting) reject(error);
  }
}
