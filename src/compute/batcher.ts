import { type ApiError, unavailable } from '../errors.js';
import { createFairQueue, type FairQueue, type Queued } from '../fair-queue.js';

export interface BatcherOptions<Item, Result> {
  /** Lanes that work side by side, until `setLanes` says otherwise. */
  readonly lanes: number;
  /** The lane that an item goes through where there are so many; null for one that may have parts for several. */
  readonly laneOf: (item: Item, lanes: number) => number | null;
  /** The parts of such an item, by lane; null for none. */
  readonly partsOf: (item: Item, lanes: number) => readonly (Item | null)[];
  /** What an item came to, of what its parts did. */
  readonly join: (results: readonly (Result | Error)[]) => Result | Error;
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

interface Waiting<Item, Result> extends Queued, Open<Item, Result> {
  /** Of a part. */
  readonly join?: Join<Result>;
}

interface Join<Result> {
  /** Parts that are not told. */
  open: number;
  readonly results: (Result | Error)[];
  readonly told: Told<Result>;
}

/** An item that is not told yet. */
export interface Open<Item, Result> {
  readonly item: Item;
  /** On the batcher's clock. */
  readonly since: number;
  /** Called once; whoever calls it puts another in its place. */
  told: Told<Result>;
}

/** Hears what an item came to. Never throws. */
type Told<Result> = (result: Result | Error) => void;

interface Lane<Item, Result> {
  readonly number: number;
  readonly line: FairQueue<Waiting<Item, Result>>;
  readonly away: Set<readonly Waiting<Item, Result>[]>;
  /** Looked at again in this turn of the event loop. */
  isDue: boolean;
}

const closing = () => unavailable('The service is stopping; try again later');

/**
 * Gathers items into micro-batches: while as many as may be are away the next one grows, so the batches are as large
 * as the load is heavy, and nobody waits for a timer.
 */
export class Batcher<Item, Result> {
  private lanes: readonly Lane<Item, Result>[];
  /** How many lanes there are to be, when nothing is away any more. */
  private wanted: number;
  /** Made once: with a stack of its own for each, refusing cost more than accepting. */
  private readonly refusal: ApiError;
  private readonly now: () => number;
  private stopped = false;

  constructor(private readonly options: BatcherOptions<Item, Result>) {
    this.now = options.now ?? (() => performance.now());
    this.wanted = options.lanes;
    this.lanes = this.emptyLanes();
    this.refusal = unavailable(options.refusal);
  }

  /** @param told perhaps at once: the item's error; ApiError UNAVAILABLE where the lane is full or the batcher has stopped */
  submit(item: Item, told: Told<Result>): void {
    if (this.stopped) return void told(closing());
    const { tenantOf, weightOf } = this.options;
    this.place({ tenant: tenantOf(item), weight: weightOf(item), item, since: this.now(), told }, true);
  }

  /**
   * Nothing is sent until what is away has come back, then what waits is put into the new lanes: so whatever goes
   * through one lane before and after keeps its order.
   */
  setLanes(lanes: number): void {
    this.wanted = lanes;
    this.regroup();
    // Where as many are wanted as there are again, what was held back meanwhile would wait for the next to come.
    for (const lane of this.lanes) this.send(lane);
  }

  /** Those that are away, then those that wait, of each tenant in its order. */
  *open(): Generator<Open<Item, Result>> {
    for (const { away, line } of this.lanes) {
      for (const batch of away) yield* batch;
      yield* line.items();
    }
  }

  /** The refusal where every lane is full for the tenant: submitting anything would come to the same, for more. */
  full(tenant: string): ApiError | null {
    const since = this.now();
    return this.lanes.every((lane) => this.isFull(lane, tenant, since)) ? this.refusal : null;
  }

  /** Items that wait. */
  waiting(): number {
    return this.lanes.reduce((sum, { line }) => sum + line.all.items, 0);
  }

  /** Refuses what waits and what comes; the batches that are away are still told. */
  stop(): void {
    this.stopped = true;
    for (const { told } of this.takeAll()) told(closing());
  }

  private emptyLanes(): Lane<Item, Result>[] {
    const numbers = Array.from({ length: this.wanted }, (_, number) => number);
    return numbers.map((number) => ({ number, line: createFairQueue(), away: new Set(), isDue: false }));
  }

  private takeAll(): Waiting<Item, Result>[] {
    return this.lanes.flatMap(({ line }) => line.takeAll(() => true));
  }

  /** In the order in which it came: what shares a lane before and after stood in that order already. */
  private regroup(): void {
    if (this.lanes.length === this.wanted || this.lanes.some(({ away }) => away.size > 0)) return;
    const waiting = this.takeAll().sort((a, b) => a.since - b.since);
    this.lanes = this.emptyLanes();
    for (const one of waiting) this.place(one, false);
  }

  /** Puts an item into its lane, or its parts into theirs. */
  private place(waiting: Waiting<Item, Result>, mayRefuse: boolean): void {
    const { laneOf, partsOf } = this.options;
    const number = laneOf(waiting.item, this.lanes.length);
    if (number !== null) return void this.put(number, waiting, mayRefuse);
    const parts = partsOf(waiting.item, this.lanes.length);
    const shared = this.sharing(waiting, parts.filter((part) => part !== null).length);
    for (const [lane, item] of parts.entries())
      if (item !== null) this.put(lane, { ...waiting, ...shared, item }, mayRefuse);
  }

  /** A part may have to be parted again. */
  private sharing({ join: before, told: whole }: Waiting<Item, Result>, parts: number) {
    const join = before ?? { open: 1, results: [], told: whole };
    join.open += parts - 1;
    const told = (result: Result | Error): void => {
      join.results.push(result);
      join.open -= 1;
      if (join.open === 0) join.told(this.options.join(join.results));
    };
    return { join, told };
  }

  private put(number: number, waiting: Waiting<Item, Result>, mayRefuse: boolean): void {
    const lane = this.lanes[number] as Lane<Item, Result>;
    if (mayRefuse && this.isFull(lane, waiting.tenant, waiting.since)) return void waiting.told(this.refusal);
    lane.line.add(waiting);
    if (lane.isDue || !this.mayGo(lane, waiting)) return;
    lane.isDue = true;
    // Not at once: what the sockets deliver in this turn of the event loop shares the batch.
    setImmediate(() => {
      lane.isDue = false;
      this.send(lane);
    });
  }

  private isFull({ line }: Lane<Item, Result>, tenant: string, now: number): boolean {
    const { maxWaiting, patience } = this.options;
    if (holds(line.all, maxWaiting)) return true;
    const { items: waiting, weight } = line.of(tenant);
    const own = { items: waiting.length, weight };
    if (holds(own, { items: maxWaiting.items / 2, weight: maxWaiting.weight / 2 })) return true;
    const [first] = waiting;
    return first !== undefined && now - first.since > patience.ms && holds(own, patience.least);
  }

  /** Whether what is away leaves room for it. */
  private mayGo({ away }: Lane<Item, Result>, { tenant, item }: Waiting<Item, Result>): boolean {
    if (this.lanes.length !== this.wanted) return false;
    const [batch] = away;
    if (batch === undefined) return true;
    const [first] = batch as readonly [Waiting<Item, Result>];
    const isOfKind = away.size === 1 && this.options.beside(first.item, item);
    return isOfKind && !batch.some((other) => other.tenant === tenant);
  }

  /** Sends what may go, and goes on when it has come back. */
  private send(lane: Lane<Item, Result>): void {
    for (let batch = this.takeBatch(lane); batch.length > 0; batch = this.takeBatch(lane)) {
      const sent = batch;
      lane.away.add(sent);
      const over = (resultOf: (i: number) => Result | Error): void => {
        lane.away.delete(sent);
        this.regroup();
        this.send(lane);
        for (const [i, { told }] of sent.entries()) told(resultOf(i));
      };
      const items = sent.map(({ item }) => item);
      this.options.run(items, lane.number).then(
        (results) => over((i) => results[i] as Result | Error),
        (error) => over(() => error),
      );
    }
  }

  /** Of the tenant that was given least so far what may go together, and with it what may of the others. */
  private takeBatch(lane: Lane<Item, Result>): Waiting<Item, Result>[] {
    const { together, maxBatch } = this.options;
    let head: Item | undefined;
    let items = 0;
    let weight = 0;
    const fits = (next: Waiting<Item, Result>): boolean =>
      head === undefined ||
      (items < maxBatch.items && weight + next.weight <= maxBatch.weight && together(head, next.item));
    return lane.line.takeAll((next) => {
      if (!fits(next) || !this.mayGo(lane, next)) return false;
      head ??= next.item;
      items += 1;
      weight += next.weight;
      return true;
    });
  }
}

const holds = ({ items, weight }: Amount, amount: Amount): boolean =>
  items >= amount.items || weight >= amount.weight;
