import { createSlots } from '../concurrency.js';
import type {
  ForecastFailure,
  ForecastOrder,
  ForecastReply,
  ForecastTask,
} from '../contracts/worker-tasks.js';
import { ApiError, unavailable } from '../errors.js';
import { createFairQueue, type FairQueue, type QueuedItem } from '../fair-queue.js';

/** JSON; null for a learner without answers; an Error for a defect. */
export type ForecastResult = string | null | Error;

/** Throws if the caller disconnected. */
export type StillWanted = () => void;

export interface ForecastBatcherOptions {
  readonly tasks: number;
  readonly tasksOfTenant: number;
  /** A larger order is a separate task. */
  readonly maxLearners: number;
  readonly maxWaiting: number;
  /** @throws ApiError UNAVAILABLE */
  readonly run: (task: ForecastTask) => Promise<{ readonly results: Results }>;
}

interface Waiting extends QueuedItem {
  readonly order: ForecastOrder;
  readonly stillWanted: StillWanted;
  readonly resolve: (results: readonly ForecastResult[]) => void;
  readonly reject: (error: unknown) => void;
}

type Results = Extract<ForecastReply, { readonly results: unknown }>['results'];

export function createForecastBatcher(options: ForecastBatcherOptions) {
  const queue = createFairQueue<Waiting>();
  const slots = createSlots(options.tasks, options.tasksOfTenant);
  // Created once: a stack per rejection is expensive.
  const refusal = unavailable('Too many forecasts wait; try again later');
  let stopped = false;
  let gathering = false;

  const sendAll = (): void => {
    gathering = false;
    const mayGo = ({ tenant }: Waiting): boolean => slots.isFree(tenant);
    for (let first = queue.dequeue(mayGo); first !== undefined; first = queue.dequeue(mayGo))
      void send(first);
  };
  const send = async (first: Waiting): Promise<void> => {
    const task = takeTask(queue, first, options.maxLearners).filter(isWanted);
    if (task.length === 0) return;
    slots.acquire(first.tenant);
    const orders = JSON.stringify(task.map(({ order }) => order));
    await options.run({ kind: 'predictions', orders }).then(
      ({ results }) => settle(task, results),
      (error) => rejectAll(task, error),
    );
    slots.release(first.tenant);
    sendAll();
  };

  return {
    forecast: (order: ForecastOrder, stillWanted: StillWanted): Promise<readonly ForecastResult[]> =>
      new Promise((resolve, reject) => {
        const { tenant, userIds } = order;
        if (stopped) return reject(closing());
        if (queue.findQueue(tenant).items.length >= options.maxWaiting) return reject(refusal);
        queue.add({ tenant, weight: userIds.length, order, stillWanted, resolve, reject });
        // Deferred, so that requests of one event loop turn share a task.
        if (!gathering) setImmediate(sendAll);
        gathering = true;
      }),
    stop: (): void => {
      stopped = true;
      const waiting = queue.dequeueAll(() => true);
      rejectAll(waiting, closing());
    },
  };
}

const closing = () => unavailable('The service is stopping; try again later');

/** A tenant with a backlog gets separate tasks, so that other tenants do not wait for all its orders. */
function takeTask(queue: FairQueue<Waiting>, first: Waiting, maxLearners: number): Waiting[] {
  const isCrowd = (tenant: string): boolean => queue.findQueue(tenant).items.length >= maxLearners;
  const alone = isCrowd(first.tenant);
  const task = [first];
  let room = maxLearners - first.weight;
  const joins = ({ tenant, weight }: Waiting): boolean =>
    weight <= room && (alone ? tenant === first.tenant : !isCrowd(tenant));
  for (let next = queue.dequeue(joins); next !== undefined; next = queue.dequeue(joins)) {
    task.push(next);
    room -= next.weight;
  }
  return task;
}

function isWanted({ stillWanted, reject }: Waiting): boolean {
  try {
    stillWanted();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

function settle(task: readonly Waiting[], results: Results): void {
  let from = 0;
  for (const { order, resolve, reject } of task) {
    const own = results.slice(from, from + order.userIds.length).map(resultOf);
    from += order.userIds.length;
    // A temporary failure concerns the whole order.
    const passing = own.find((result) => result instanceof ApiError);
    if (passing === undefined) resolve(own);
    else reject(passing);
  }
}

function rejectAll(orders: readonly Waiting[], error: unknown): void {
  for (const { reject } of orders) reject(error);
}

function resultOf(result: string | null | ForecastFailure): ForecastResult {
  if (result === null || typeof result === 'string') return result;
  return result.isTransient ? unavailable(result.reason) : new Error(result.reason);
}
