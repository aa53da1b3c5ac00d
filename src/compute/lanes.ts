/** Queues of the track threads. A learner has one lane, so its answers stay in order. */
import {
  allSlots,
  type EventOutcome,
  slotCount,
  type TrackReply,
  type TrackTask,
} from '../contracts/answers/track-task.js';
import { type ApiError, unavailable } from '../errors.js';
import { createFairQueue, type QueuedItem } from '../fair-queue.js';
import {
  type EventsRequest,
  joinOutcomes,
  parseIds,
  type RequestOutcomes,
  type RequestPart,
  runTraced,
  splitOutcomes,
} from './track-task.js';

interface LanesOptions {
  readonly laneCount: number;
  /** The lane is the slot modulo the number of lanes. */
  readonly findSlot: (tenant: string, userId: string) => number;
  /** Settles in bounded time. */
  readonly run: (task: TrackTask, lane: number) => Promise<TrackReply>;
  /** Receives causes that callers must not see. */
  readonly onFailure: (error: unknown) => void;
  readonly limits?: LaneLimits;
  readonly now?: () => number;
}

/** `items`: requests. `weight`: bytes; a request with several events weighs at least `minMultiEventWeight`. */
type RequestSize = { readonly items: number; readonly weight: number };

export interface LaneLimits {
  /** Per task. A larger request runs alone. */
  readonly maxTaskSize: RequestSize;
  /** Per lane; half per tenant. */
  readonly maxQueueSize: RequestSize;
  /** Once a tenant's oldest request waits longer, `maxSlowQueueSize` is the tenant's limit. */
  readonly maxQueueWaitMs: number;
  readonly maxSlowQueueSize: RequestSize;
}

const defaultLimits: LaneLimits = {
  maxTaskSize: { items: 512, weight: 256 * 1024 },
  maxQueueSize: { items: 10_000, weight: 32 * 1024 * 1024 },
  maxQueueWaitMs: 1000,
  // The API contract guarantees a queue of at least 1,000 answers.
  maxSlowQueueSize: { items: 1000, weight: 16 * 1024 * 1024 },
};

/** A batch of few bytes may have a thousand errors, which are costly to describe. */
const minMultiEventWeight = 64 * 1024;

type OutcomeCallback = (outcomes: RequestOutcomes) => void;

export interface LaneEntry extends QueuedItem, RequestPart {
  readonly queuedAt: number;
  /** Called once, perhaps synchronously. It must not throw. stuck-repeats.ts replaces it. */
  complete: OutcomeCallback;
  readonly splitRequest?: {
    openParts: number;
    readonly outcomes: RequestOutcomes[];
    readonly complete: OutcomeCallback;
  };
}

class Lane {
  readonly queue = createFairQueue<LaneEntry>();
  /** At most one task of batches and one of single answers. No tenant is in both: its requests stay in order (ADR 30). */
  readonly inFlight = new Set<readonly LaneEntry[]>();
  isScheduled = false;

  constructor(
    readonly index: number,
    private readonly limits: LaneLimits,
  ) {}

  isFull(tenant: string, time: number): boolean {
    const { maxQueueSize, maxQueueWaitMs, maxSlowQueueSize } = this.limits;
    if (reachesLimit(this.queue.total, maxQueueSize, 1)) return true;
    const { items, weight } = this.queue.findQueue(tenant);
    const queuedSize = { items: items.length, weight };
    const waitedMs = time - (items[0]?.queuedAt ?? time);
    return (
      reachesLimit(queuedSize, maxQueueSize, 0.5) ||
      (waitedMs > maxQueueWaitMs && reachesLimit(queuedSize, maxSlowQueueSize, 1))
    );
  }

  canDispatch({ tenant, request }: LaneEntry): boolean {
    const [task] = this.inFlight;
    if (task === undefined) return true;
    const isOtherKind = isSingleEvent(request) !== isSingleEvent((task[0] as LaneEntry).request);
    return this.inFlight.size === 1 && isOtherKind && !task.some((other) => other.tenant === tenant);
  }

  dequeueTask(): LaneEntry[] {
    const { maxTaskSize } = this.limits;
    let first: LaneEntry | undefined;
    let items = 0;
    let weight = 0;
    return this.queue.dequeueAccepted((entry) => {
      const fits =
        first === undefined ||
        (items < maxTaskSize.items &&
          weight + entry.weight <= maxTaskSize.weight &&
          canShareTask(first, entry));
      if (!fits || !this.canDispatch(entry)) return false;
      first ??= entry;
      items += 1;
      weight += entry.weight;
      return true;
    });
  }
}

export type Lanes = ReturnType<typeof createLanes>;

export function createLanes(options: LanesOptions) {
  const { findSlot, limits = defaultLimits, now = () => performance.now() } = options;
  let targetCount = options.laneCount;
  let lanes = buildLanes(targetCount, limits);
  let isStopped = false;
  const laneFullError = unavailable('The answer queue is full; retry later.');

  function submit(request: EventsRequest, importId: string | null, complete: OutcomeCallback): void {
    if (isStopped) return void complete(createStopError());
    const { tenant, form, body } = request;
    const weight = form === 'event' ? body.length : Math.max(body.length, minMultiEventWeight);
    route({ tenant, weight, request, importId, slots: allSlots, queuedAt: now(), complete }, true);
  }

  function route(entry: LaneEntry, canReject: boolean): void {
    const laneIndex = findLane(entry.request, lanes.length, findSlot);
    if (laneIndex !== null) return void enqueue(lanes[laneIndex] as Lane, entry, canReject);
    const parts = lanes
      .map((lane) => ({ lane, slots: entry.slots & computeSlots(lane.index, lanes.length) }))
      .filter(({ slots }) => slots !== 0);
    const joiner = createPartJoiner(entry, parts.length);
    for (const { lane, slots } of parts) enqueue(lane, { ...entry, ...joiner, slots }, canReject);
  }

  function enqueue(lane: Lane, entry: LaneEntry, canReject: boolean): void {
    if (canReject && lane.isFull(entry.tenant, entry.queuedAt)) return void entry.complete(laneFullError);
    lane.queue.add(entry);
    if (lane.isScheduled || !lane.canDispatch(entry)) return;
    lane.isScheduled = true;
    // Requests of one event loop turn share a task.
    setImmediate(() => {
      lane.isScheduled = false;
      dispatch(lane);
    });
  }

  function dispatch(lane: Lane): void {
    if (lanes.length !== targetCount) return;
    for (let task = lane.dequeueTask(); task.length > 0; task = lane.dequeueTask()) {
      const entries = task;
      lane.inFlight.add(entries);
      const completeTask = (findOutcome: (i: number) => RequestOutcomes): void => {
        lane.inFlight.delete(entries);
        applyLaneCount();
        dispatch(lane);
        for (const [i, { complete }] of entries.entries()) complete(findOutcome(i));
      };
      const runTask = async () =>
        splitOutcomes(
          await runTraced(entries, (trackTask) => options.run(trackTask, lane.index)),
          options.onFailure,
        );
      runTask().then(
        (outcomes) => completeTask((i) => outcomes[i] as RequestOutcomes),
        (error) => completeTask(() => error),
      );
    }
  }

  const removeQueued = (): LaneEntry[] => lanes.flatMap(({ queue }) => queue.dequeueAccepted(() => true));

  /** Does nothing while a task is in flight; each completion calls it again. Routes queued requests in order. */
  function applyLaneCount(): void {
    if (lanes.length === targetCount || lanes.some(({ inFlight }) => inFlight.size > 0)) return;
    const queued = removeQueued().sort((a, b) => a.queuedAt - b.queuedAt);
    lanes = buildLanes(targetCount, limits);
    for (const entry of queued) route(entry, false);
  }

  return {
    /**
     * Tracks the events of a request in order. `counted`: mastery, event id and row are committed together.
     * @param importId null: live answers
     * @throws ApiError INVALID_REQUEST, INTERNAL, or UNAVAILABLE if the lane is full
     */
    track: (request: EventsRequest, importId: string | null): Promise<readonly EventOutcome[]> =>
      new Promise((resolve, reject) =>
        submit(request, importId, (outcomes) =>
          outcomes instanceof Error ? reject(outcomes) : resolve(outcomes),
        ),
      ),
    /** `track` for one live event, without a promise, which would cost more than the dispatch. */
    trackEvent: (request: EventsRequest, complete: (outcome: EventOutcome | Error) => void): void =>
      submit(request, null, (outcomes) =>
        complete(outcomes instanceof Error ? outcomes : (outcomes[0] as EventOutcome)),
      ),
    /** Single events in flight, then queued: a learner's events are in order. */
    *listOpenEvents(): Generator<LaneEntry> {
      for (const { inFlight, queue } of lanes)
        for (const entries of [...inFlight, queue.items()])
          for (const entry of entries) if (isSingleEvent(entry.request)) yield entry;
    },
    /** Null if a lane accepts requests of the tenant. An early check halves the cost of a rejection. */
    findOverload: (tenant: string): ApiError | null => {
      const time = now();
      return lanes.every((lane) => lane.isFull(tenant, time)) ? laneFullError : null;
    },
    countQueued: () => lanes.reduce((sum, { queue }) => sum + queue.total.items, 0),
    /** @param count at most `slotCount`; applies when no task is in flight */
    setLaneCount: (count: number): void => {
      targetCount = count;
      applyLaneCount();
      // If the change is reverted, the requests that waited for it are dispatched now.
      for (const lane of lanes) dispatch(lane);
    },
    /** Tasks in flight complete. */
    stop: (): void => {
      isStopped = true;
      for (const { complete } of removeQueued()) complete(createStopError());
    },
  };
}

const buildLanes = (count: number, limits: LaneLimits): readonly Lane[] =>
  Array.from({ length: count }, (_, index) => new Lane(index, limits));

const createStopError = () => unavailable('The service is shutting down; retry later.');

const reachesLimit = ({ items, weight }: RequestSize, limit: RequestSize, share: number): boolean =>
  items >= share * limit.items || weight >= share * limit.weight;

const isSingleEvent = ({ form }: EventsRequest): boolean => form === 'event';

/** An import's request is a separate task, because the feeder relies on one commit per group. */
const canShareTask = (first: LaneEntry, entry: LaneEntry): boolean =>
  entry.importId === null &&
  first.importId === null &&
  first.request.form === entry.request.form &&
  first.slots === entry.slots;

/** Null for a batch: its learners may have several lanes. */
function findLane(
  request: EventsRequest,
  laneCount: number,
  findSlot: LanesOptions['findSlot'],
): number | null {
  if (laneCount === 1) return 0;
  if (request.form === 'batch' || request.form === 'lines') return null;
  // Any lane can reject a body without a readable learner.
  const { userId } = parseIds(request);
  return userId === null ? 0 : findSlot(request.tenant, userId) % laneCount;
}

function computeSlots(laneIndex: number, laneCount: number): number {
  let slots = 0;
  for (let slot = laneIndex; slot < slotCount; slot += laneCount) slots |= 1 << slot;
  return slots;
}

/** A part is split again if the number of lanes changes. */
function createPartJoiner(entry: LaneEntry, partCount: number): Pick<LaneEntry, 'splitRequest' | 'complete'> {
  const splitRequest = entry.splitRequest ?? { openParts: 1, outcomes: [], complete: entry.complete };
  splitRequest.openParts += partCount - 1;
  const complete = (outcomes: RequestOutcomes): void => {
    splitRequest.outcomes.push(outcomes);
    splitRequest.openParts -= 1;
    if (splitRequest.openParts === 0) splitRequest.complete(joinOutcomes(splitRequest.outcomes));
  };
  return { splitRequest, complete };
}
