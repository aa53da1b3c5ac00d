import { unavailable } from './errors.js';
import { createFairQueue, type Queued } from './fair-queue.js';

/** Concurrent calls with the same name share a result. @param run settles in bounded time */
export function singleFlights<More extends unknown[], Value>(
  make: (name: string, ...more: More) => Promise<Value>,
): (name: string, ...more: More) => Promise<Value> {
  const running = new Map<string, Promise<Value>>();
  return (name, ...more) => {
    const shared = running.get(name) ?? make(name, ...more).finally(() => running.delete(name));
    running.set(name, shared);
    return shared;
  };
}

/** Calls with the same name share a `run` until `ready` resolves, so that no value is older than a call. */
export function sharedStart<Ready, Value>(
  ready: () => Promise<Ready>,
  make: (ready: Ready, name: string) => Promise<Value>,
): (name: string) => Promise<Value> {
  const starting = new Map<string, Promise<Value>>();
  return (name) => {
    const start = () =>
      ready()
        .finally(() => starting.delete(name))
        .then((one) => make(one, name));
    const shared = starting.get(name) ?? start();
    starting.set(name, shared);
    return shared;
  };
}

export function singleFlight<Value>(make: () => Promise<Value>): () => Promise<Value> {
  const shared = singleFlights(make);
  return () => shared('');
}

/** Waits for all, then throws the first error. */
export async function allEnded(work: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(work)) if (one.status === 'rejected') throw one.reason;
}

export function createSlots(max: number, maxOfTenant: number) {
  const taken = new Map<string, number>();
  let sum = 0;
  const of = (tenant: string): number => taken.get(tenant) ?? 0;
  const change = (tenant: string, by: 1 | -1): void => {
    const count = of(tenant) + by;
    sum += by;
    if (count === 0) taken.delete(tenant);
    else taken.set(tenant, count);
  };
  return {
    isFree: (tenant: string): boolean => sum < max && of(tenant) < maxOfTenant,
    take: (tenant: string): void => change(tenant, 1),
    release: (tenant: string): void => change(tenant, -1),
  };
}

export interface LimiterOptions {
  readonly maxRunning: number;
  readonly maxRunningOfTenant: number;
  readonly maxQueuedOfTenant: number;
  readonly maxQueueWaitMs: number;
  readonly refusal: string;
}

/** Rejected work returns `onRejected()`. @throws ApiError UNAVAILABLE without `onRejected` */
export type Limiter = <Result>(
  tenant: string,
  work: () => Promise<Result>,
  refuse?: () => Result,
) => Promise<Result>;

export function createLimiter(options: LimiterOptions): Limiter {
  const slots = createSlots(options.maxRunning, options.maxRunningOfTenant);
  const queue = createFairQueue<Queued & { readonly start: () => void }>();

  const waitForSlot = (tenant: string): Promise<boolean> =>
    new Promise((resolve) => {
      const start = (): void => {
        clearTimeout(timer);
        slots.take(tenant);
        resolve(true);
      };
      const waiting = { tenant, weight: 1, start };
      const timer = setTimeout(() => {
        queue.remove(waiting);
        resolve(false);
      }, options.maxQueueWaitMs);
      queue.add(waiting);
    });

  const throwRefusal = (): never => {
    throw unavailable(options.refusal);
  };

  return async (tenant, work, refuse = throwRefusal) => {
    const isFull = queue.of(tenant).items.length >= options.maxQueuedOfTenant;
    if (slots.isFree(tenant)) slots.take(tenant);
    else if (isFull || !(await waitForSlot(tenant))) return refuse();
    try {
      return await work();
    } finally {
      slots.release(tenant);
      queue.take((next) => slots.isFree(next.tenant))?.start();
    }
  };
}
