import { unavailable } from './errors.js';
import { createFairQueue, type QueuedItem } from './fair-queue.js';

/**
 * Concurrent calls with the same name get the result of the first one; their other arguments are ignored.
 * @param run settles in bounded time
 */
export function singleFlightByName<More extends unknown[], Value>(
  run: (name: string, ...more: More) => Promise<Value>,
): (name: string, ...more: More) => Promise<Value> {
  const running = new Map<string, Promise<Value>>();
  return (name, ...more) => {
    const shared = running.get(name) ?? run(name, ...more).finally(() => running.delete(name));
    running.set(name, shared);
    return shared;
  };
}

/**
 * Calls that arrive before `run` starts share it. Later calls start another `run`, so no
 * caller gets a value that was read before the call.
 */
export function shareUntilReady<Ready, Value>(
  ready: () => Promise<Ready>,
  run: (ready: Ready, name: string) => Promise<Value>,
): (name: string) => Promise<Value> {
  const starting = new Map<string, Promise<Value>>();
  return (name) => {
    const start = () =>
      ready()
        .finally(() => starting.delete(name))
        .then((one) => run(one, name));
    const shared = starting.get(name) ?? start();
    starting.set(name, shared);
    return shared;
  };
}

export function singleFlight<Value>(run: () => Promise<Value>): () => Promise<Value> {
  const shared = singleFlightByName(run);
  return () => shared('');
}

/** Waits for all, then throws the first error. */
export async function waitForAll(work: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(work)) if (one.status === 'rejected') throw one.reason;
}

export function createPermits(max: number, maxOfTenant: number) {
  const usedByTenant = new Map<string, number>();
  let sum = 0;
  const countTenant = (tenant: string): number => usedByTenant.get(tenant) ?? 0;
  const change = (tenant: string, by: 1 | -1): void => {
    const count = countTenant(tenant) + by;
    sum += by;
    if (count === 0) usedByTenant.delete(tenant);
    else usedByTenant.set(tenant, count);
  };
  return {
    isFree: (tenant: string): boolean => sum < max && countTenant(tenant) < maxOfTenant,
    acquire: (tenant: string): void => change(tenant, 1),
    release: (tenant: string): void => change(tenant, -1),
  };
}

export interface LimiterOptions {
  readonly maxRunning: number;
  readonly maxRunningOfTenant: number;
  readonly maxQueuedOfTenant: number;
  readonly maxQueueWaitMs: number;
  readonly rejectionMessage: string;
}

/** Rejected work returns `onRejected()`. @throws ApiError UNAVAILABLE without `onRejected` */
export type Limiter = <Result>(
  tenant: string,
  work: () => Promise<Result>,
  onRejected?: () => Result,
) => Promise<Result>;

export function createLimiter(options: LimiterOptions): Limiter {
  const slots = createPermits(options.maxRunning, options.maxRunningOfTenant);
  const queue = createFairQueue<QueuedItem & { readonly start: () => void }>();

  const waitForSlot = (tenant: string): Promise<boolean> =>
    new Promise((resolve) => {
      const start = (): void => {
        clearTimeout(timer);
        slots.acquire(tenant);
        resolve(true);
      };
      const waiting = { tenant, weight: 1, start };
      const timer = setTimeout(() => {
        queue.remove(waiting);
        resolve(false);
      }, options.maxQueueWaitMs);
      queue.add(waiting);
    });

  const throwRejection = (): never => {
    throw unavailable(options.rejectionMessage);
  };

  return async (tenant, work, onRejected = throwRejection) => {
    const isFull = queue.findQueue(tenant).items.length >= options.maxQueuedOfTenant;
    if (slots.isFree(tenant)) slots.acquire(tenant);
    else if (isFull || !(await waitForSlot(tenant))) return onRejected();
    try {
      return await work();
    } finally {
      slots.release(tenant);
      queue.dequeue((next) => slots.isFree(next.tenant))?.start();
    }
  };
}
