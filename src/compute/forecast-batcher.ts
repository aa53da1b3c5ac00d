import { createPermits } from '../concurrency.js';
import type {
  ForecastFailure,
  ForecastOrder,
  ForecastReply,
  ForecastTask,
} from '../contracts/forecasts/forecast-tasks.js';
import { ApiError, unavailable } from '../errors.js';
import { createFairQueue, type FairQueue, type QueuedItem } from '../fair-queue.js';

/** JSON; null for a learner without answers; an Error for a defect. */
export type ForecastResult = string | null | Error;

/** Throws if the caller disconnected. */
export type AbortCheck = () => void;

export interface ForecastBatcherOptions {
  readonly maxTasks: number;
  readonly maxTenantTasks: number;
  /** A larger order is a separate task. */
  readonly maxLearners: number;
  readonly maxTenantOrders: number;
  /** @throws ApiError UNAVAILABLE */
  readonly run: (task: ForecastTask) => Promise<{ readonly results: Results }>;
}

interface QueuedOrder extends QueuedItem {
  readonly order: ForecastOrder;
  readonly throwIfAborted: AbortCheck;
  readonly resolve: (results: readonly ForecastResult[]) => void;
  readonly reject: (error: unknown) => void;
}

type Results = Extract<ForecastReply, { readonly results: unknown }>['results'];

export function createForecastBatcher(options: ForecastBatcherOptions) {
  const queue = createFairQueue<QueuedOrder>();
  const slots = createPermits(options.maxTasks, options.maxTenantTasks);
  // Created once: a stack per rejection is expensive.
  const queueFullError = unavailable('The forecast queue is full; retry later.');
  let isStopped = false;
  let isScheduled = false;

  const dispatchAll = (): void => {
    isScheduled = false;
    const canDispatch = ({ tenant }: QueuedOrder): boolean => slots.isFree(tenant);
    for (let first = queue.dequeue(canDispatch); first !== undefined; first = queue.dequeue(canDispatch))
      void dispatch(first);
  };
  const dispatch = async (first: QueuedOrder): Promise<void> => {
    const task = joinOrders(queue, first, options.maxLearners).filter(rejectIfAborted);
    if (task.length === 0) return;
    slots.acquire(first.tenant);
    const orders = JSON.stringify(task.map(({ order }) => order));
    await options.run({ kind: 'predictions', orders }).then(
      ({ results }) => completeOrders(task, results),
      (error) => rejectAll(task, error),
    );
    slots.release(first.tenant);
    dispatchAll();
  };

  return {
    forecast: (order: ForecastOrder, throwIfAborted: AbortCheck): Promise<readonly ForecastResult[]> =>
      new Promise((resolve, reject) => {
        const { tenant, userIds } = order;
        if (isStopped) return reject(createStopError());
        if (queue.findQueue(tenant).items.length >= options.maxTenantOrders) return reject(queueFullError);
        queue.add({ tenant, weight: userIds.length, order, throwIfAborted, resolve, reject });
        // Deferred, so that requests of one event loop turn share a task.
        if (!isScheduled) setImmediate(dispatchAll);
        isScheduled = true;
      }),
    stop: (): void => {
      isStopped = true;
      const queued = queue.dequeueAccepted(() => true);
      rejectAll(queued, createStopError());
    },
  };
}

const createStopError = () => unavailable('The service is shutting down; retry later.');

/** A tenant with a backlog gets separate tasks, so that other tenants do not wait for all its orders. */
function joinOrders(queue: FairQueue<QueuedOrder>, first: QueuedOrder, maxLearners: number): QueuedOrder[] {
  const hasBacklog = (tenant: string): boolean => queue.findQueue(tenant).items.length >= maxLearners;
  const isSeparate = hasBacklog(first.tenant);
  const task = [first];
  let remaining = maxLearners - first.weight;
  const canJoin = ({ tenant, weight }: QueuedOrder): boolean =>
    weight <= remaining && (isSeparate ? tenant === first.tenant : !hasBacklog(tenant));
  for (let next = queue.dequeue(canJoin); next !== undefined; next = queue.dequeue(canJoin)) {
    task.push(next);
    remaining -= next.weight;
  }
  return task;
}

function rejectIfAborted({ throwIfAborted, reject }: QueuedOrder): boolean {
  try {
    throwIfAborted();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

function completeOrders(task: readonly QueuedOrder[], results: Results): void {
  let from = 0;
  for (const { order, resolve, reject } of task) {
    const orderResults = results.slice(from, from + order.userIds.length).map(toResult);
    from += order.userIds.length;
    // A temporary failure concerns the whole order.
    const temporaryError = orderResults.find((result) => result instanceof ApiError);
    if (temporaryError === undefined) resolve(orderResults);
    else reject(temporaryError);
  }
}

function rejectAll(orders: readonly QueuedOrder[], error: unknown): void {
  for (const { reject } of orders) reject(error);
}

function toResult(result: string | null | ForecastFailure): ForecastResult {
  if (result === null || typeof result === 'string') return result;
  return result.isTransient ? unavailable(result.reason) : new Error(result.reason);
}
