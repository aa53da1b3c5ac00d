/** Queues of the track threads. A learner has one lane, so its answers stay in order. */
import {
  allSlots,
  type EventOutcome,
  slotCount,
  type TrackReply,
  type TrackTask,
} from '../contracts/worker-tasks.js';
import { type ApiError, unavailable } from '../errors.js';
import { createFairQueue, type QueuedItem } from '../fair-queue.js';
import {
  idsIn,
  inSpan,
  joinedOutcomes,
  type Outcomes,
  outcomesOf,
  type SentEvents,
  type SentPart,
} from './track-task.js';

interface LanesOptions {
  readonly lanes: number;
  /** The lane is the slot modulo the number of lanes. */
  readonly slotOf: (tenant: string, userId: string) => number;
  /** Settles in bounded time. */
  readonly run: (task: TrackTask, lane: number) => Promise<TrackReply>;
  readonly onFailure: (error: unknown) => void;
  readonly limits?: LaneLimits;
  readonly now?: () => number;
}

/** `weight` in bytes. */
type Amount = { readonly items: number; readonly weight: number };

export interface LaneLimits {
  /** Per task. A larger request runs alone. */
  readonly maxTask: Amount;
  /** Per lane; half per tenant. */
  readonly maxQueued: Amount;
  /** Once its first request waits longer, `minQueueSize` limits the tenant. */
  readonly maxQueueWaitMs: number;
  readonly minQueued: Amount;
}

const standardLimits: LaneLimits = {
  maxTask: { items: 512, weight: 256 * 1024 },
  maxQueued: { items: 10_000, weight: 32 * 1024 * 1024 },
  maxQueueWaitMs: 1000,
  // The API contract guarantees a queue of at least 1,000 answers.
  minQueued: { items: 1000, weight: 16 * 1024 * 1024 },
};

/** A short batch may have a thousand errors, which are costly to describe. */
const minBatchWeight = 64 * 1024;

type Settle = (outcomes: Outcomes) => void;

export interface Entry extends QueuedItem, SentPart {
  readonly since: number;
  /** Called once, perhaps synchronously. It may not throw. */
  settle: Settle;
  readonly whole?: { open: number; readonly outcomes: Outcomes[]; readonly settle: Settle };
}

class Lane {
  readonly queue = createFairQueue<Entry>();
  /** At most one task of batches and one of single answers, with no tenant in both (ADR 30). */
  readonly inFlight = new Set<readonly Entry[]>();
  isScheduled = false;

  constructor(
    readonly number: number,
    private readonly limits: LaneLimits,
  ) {}

  isFull(tenant: string, time: number): boolean {
    const { maxQueued, maxQueueWaitMs, minQueued } = this.limits;
    if (reaches(this.queue.all, maxQueued, 1)) return true;
    const { items, weight } = this.queue.findQueue(tenant);
    const own = { items: items.length, weight };
    const waited = time - (items[0]?.since ?? time);
    return reaches(own, maxQueued, 0.5) || (waited > maxQueueWaitMs && reaches(own, minQueued, 1));
  }

  mayGo({ tenant, sent }: Entry): boolean {
    const [task] = this.inFlight;
    if (task === undefined) return true;
    const isOtherKind = isSingle(sent) !== isSingle((task[0] as Entry).sent);
    return this.inFlight.size === 1 && isOtherKind && !task.some((other) => other.tenant === tenant);
  }

  takeTask(): Entry[] {
    const { maxTask } = this.limits;
    let first: Entry | undefined;
    let items = 0;
    let weight = 0;
    return this.queue.dequeueAll((entry) => {
      const fits =
        first === undefined ||
        (items < maxTask.items && weight + entry.weight <= maxTask.weight && shareTask(first, entry));
      if (!fits || !this.mayGo(entry)) return false;
      first ??= entry;
      items += 1;
      weight += entry.weight;
      return true;
    });
  }
}

export type Lanes = ReturnType<typeof createLanes>;

export function createLanes(options: LanesOptions) {
  const { slotOf, limits = standardLimits, now = () => performance.now() } = options;
  let wanted = options.lanes;
  let lanes = makeLanes(wanted, limits);
  let isStopped = false;
  const refusal = unavailable('Too many answers wait to be counted; try again later');

  function submit(sent: SentEvents, importId: string | null, settle: Settle): void {
    if (isStopped) return void settle(stopping());
    const { tenant, form, body } = sent;
    const weight = form === 'event' ? body.length : Math.max(body.length, minBatchWeight);
    route({ tenant, weight, sent, importId, slots: allSlots, since: now(), settle }, true);
  }

  function route(entry: Entry, mayRefuse: boolean): void {
    const number = laneOf(entry.sent, lanes.length, slotOf);
    if (number !== null) return void enqueue(lanes[number] as Lane, entry, mayRefuse);
    const parts = lanes
      .map((lane) => ({ lane, slots: entry.slots & slotsOf(lane.number, lanes.length) }))
      .filter(({ slots }) => slots !== 0);
    const shared = partOf(entry, parts.length);
    for (const { lane, slots } of parts) enqueue(lane, { ...entry, ...shared, slots }, mayRefuse);
  }

  function enqueue(lane: Lane, entry: Entry, mayRefuse: boolean): void {
    if (mayRefuse && lane.isFull(entry.tenant, entry.since)) return void entry.settle(refusal);
    lane.queue.add(entry);
    if (lane.isScheduled || !lane.mayGo(entry)) return;
    lane.isScheduled = true;
    // Requests of one event loop turn share a task.
    setImmediate(() => {
      lane.isScheduled = false;
      send(lane);
    });
  }

  function send(lane: Lane): void {
    if (lanes.length !== wanted) return;
    for (let task = lane.takeTask(); task.length > 0; task = lane.takeTask()) {
      const entries = task;
      lane.inFlight.add(entries);
      const finish = (outcomeOf: (i: number) => Outcomes): void => {
        lane.inFlight.delete(entries);
        regroup();
        send(lane);
        for (const [i, { settle }] of entries.entries()) settle(outcomeOf(i));
      };
      const count = async () =>
        outcomesOf(await inSpan(entries, (sent) => options.run(sent, lane.number)), options.onFailure);
      count().then(
        (outcomes) => finish((i) => outcomes[i] as Outcomes),
        (error) => finish(() => error),
      );
    }
  }

  const takeQueued = (): Entry[] => lanes.flatMap(({ queue }) => queue.dequeueAll(() => true));

  /** Waits until no task is in flight. Routes queued requests again in order. */
  function regroup(): void {
    if (lanes.length === wanted || lanes.some(({ inFlight }) => inFlight.size > 0)) return;
    const queued = takeQueued().sort((a, b) => a.since - b.since);
    lanes = makeLanes(wanted, limits);
    for (const entry of queued) route(entry, false);
  }

  return {
    /**
     * `counted`: mastery, event id and row are committed together.
     * @param importId null: live answers
     * @throws ApiError INVALID_REQUEST, INTERNAL, or UNAVAILABLE if the lane is full
     */
    track: (sent: SentEvents, importId: string | null): Promise<readonly EventOutcome[]> =>
      new Promise((resolve, reject) =>
        submit(sent, importId, (outcomes) =>
          outcomes instanceof Error ? reject(outcomes) : resolve(outcomes),
        ),
      ),
    /** Without a promise, which would cost more than the dispatch. */
    trackOne: (sent: SentEvents, settle: (outcome: EventOutcome | Error) => void): void =>
      submit(sent, null, (outcomes) =>
        settle(outcomes instanceof Error ? outcomes : (outcomes[0] as EventOutcome)),
      ),
    *open(): Generator<Entry> {
      for (const { inFlight, queue } of lanes)
        for (const entries of [...inFlight, queue.items()])
          for (const entry of entries) if (isSingle(entry.sent)) yield entry;
    },
    /** Null if a lane accepts requests of the tenant. An early check halves the cost of a rejection. */
    full: (tenant: string): ApiError | null => {
      const time = now();
      return lanes.every((lane) => lane.isFull(tenant, time)) ? refusal : null;
    },
    waiting: () => lanes.reduce((sum, { queue }) => sum + queue.all.items, 0),
    /** @param count at most `slotCount`; applies when no task is in flight */
    setLanes: (count: number): void => {
      wanted = count;
      regroup();
      // Dispatches requests that waited for a change which is reverted now.
      for (const lane of lanes) send(lane);
    },
    /** Tasks in flight complete. */
    stop: (): void => {
      isStopped = true;
      for (const { settle } of takeQueued()) settle(stopping());
    },
  };
}

const makeLanes = (count: number, limits: LaneLimits): readonly Lane[] =>
  Array.from({ length: count }, (_, number) => new Lane(number, limits));

const stopping = () => unavailable('The service is stopping; try again later');

const reaches = ({ items, weight }: Amount, limit: Amount, share: number): boolean =>
  items >= share * limit.items || weight >= share * limit.weight;

const isSingle = ({ form }: SentEvents): boolean => form === 'event';

/** The import's feeder requires a separate task per request. */
const shareTask = (first: Entry, entry: Entry): boolean =>
  entry.importId === null &&
  first.importId === null &&
  first.sent.form === entry.sent.form &&
  first.slots === entry.slots;

/** Null for a batch: its learners may have several lanes. */
function laneOf(sent: SentEvents, lanes: number, slotOf: LanesOptions['slotOf']): number | null {
  if (lanes === 1) return 0;
  if (sent.form === 'batch' || sent.form === 'lines') return null;
  // Any lane can reject a body without a readable learner.
  const { userId } = idsIn(sent);
  return userId === null ? 0 : slotOf(sent.tenant, userId) % lanes;
}

function slotsOf(lane: number, lanes: number): number {
  let slots = 0;
  for (let slot = lane; slot < slotCount; slot += lanes) slots |= 1 << slot;
  return slots;
}

/** A part can be split again. */
function partOf(entry: Entry, parts: number): Pick<Entry, 'whole' | 'settle'> {
  const whole = entry.whole ?? { open: 1, outcomes: [], settle: entry.settle };
  whole.open += parts - 1;
  const settle = (outcomes: Outcomes): void => {
    whole.outcomes.push(outcomes);
    whole.open -= 1;
    if (whole.open === 0) whole.settle(joinedOutcomes(whole.outcomes));
  };
  return { whole, settle };
}
