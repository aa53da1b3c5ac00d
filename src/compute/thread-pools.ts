import { EventEmitter } from 'node:events';
import { Piscina } from 'piscina';
import type { DeliveryReply, DeliveryTask } from '../contracts/webhooks/delivery-tasks.js';
import { unavailable } from '../errors.js';
import type { Logger } from '../logger.js';
import { resolveProgram } from '../programs.js';

type PoolOptions = NonNullable<ConstructorParameters<typeof Piscina>[0]>;

/** Atomics off: an idle worker would block in Atomics.wait, and its Redis connection would stall. */
const startPool = (
  name: 'track' | 'forecast' | 'rewrite' | 'deliver' | 'fit' | 'rebuild',
  options: PoolOptions,
): Piscina =>
  new Piscina({
    ...{ filename: resolveProgram('entry.cjs'), name, atomics: 'disabled', recordTiming: false },
    ...options,
  });

/** A longer task hangs. `deliver` has 15 s per request, plus the start of the thread. */
const taskTimeoutMs = { track: 15_000, forecast: 15_000, rewrite: 15_000, deliver: 30_000 } as const;

/** Piscina's balancer runs one task per thread if tasks can be aborted. */
const pickOnlyThread: NonNullable<PoolOptions['loadBalancer']> = (_task, [thread]) => thread ?? null;

/** The task, or another one in its thread, timed out. */
export class TaskAbortedError extends Error {}

type AvailableReply<Reply> = Exclude<Reply, { readonly unavailable: string }>;

/** @throws ApiError UNAVAILABLE */
export function unwrapReply<Reply extends object>(reply: Reply): AvailableReply<Reply> {
  if ('unavailable' in reply) throw unavailable(String(reply.unavailable));
  return reply as AvailableReply<Reply>;
}

/** Every task settles in bounded time. */
export class ServingPool {
  private readonly pool: Piscina;
  /** A task that fails after another one's abort lost its thread. */
  private abortCount = 0;

  constructor(
    private readonly name: keyof typeof taskTimeoutMs,
    options: PoolOptions,
    logger: Logger,
  ) {
    // Without a listener, a thread that cannot start ends the process.
    this.pool = startPool(name, options).on('error', (error) =>
      logger.error({ err: error }, 'cannot start a worker thread'),
    );
  }

  get threads() {
    return this.pool.threads;
  }

  /** @throws TaskAbortedError, and errors of the task */
  async run<Reply>(task: unknown, transferList: ArrayBuffer[] = []): Promise<Reply> {
    // Not an AbortSignal: V8 frees it only in a full garbage collection, which then runs often.
    const signal = new EventEmitter();
    const previousAborts = this.abortCount;
    const timer = setTimeout(() => {
      this.abortCount += 1;
      signal.emit('abort');
    }, taskTimeoutMs[this.name]);
    try {
      return await this.pool.run(task, { signal, transferList });
    } catch (error) {
      if (this.abortCount === previousAborts) throw error;
      throw new TaskAbortedError('a task timed out and its thread was terminated', { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /** @throws ApiError UNAVAILABLE */
  async runAvailable<Reply extends object>(
    task: unknown,
    timeoutMessage: string,
  ): Promise<AvailableReply<Reply>> {
    const reply = await this.run<Reply>(task).catch((error: unknown) => {
      throw error instanceof TaskAbortedError ? unavailable(timeoutMessage, error) : error;
    });
    return unwrapReply(reply);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  /** Running tasks reject. */
  destroy(): Promise<void> {
    return this.pool.destroy();
  }
}

export const onDemandOptions = { minThreads: 0, maxThreads: 1, idleTimeout: 60_000 };

export const startMultiTaskPool = (
  name: 'track' | 'forecast' | 'deliver',
  maxTasks: number,
  options: PoolOptions,
  logger: Logger,
) => {
  const shared = { concurrentTasksPerWorker: maxTasks, maxQueue: maxTasks, loadBalancer: pickOnlyThread };
  return new ServingPool(name, { minThreads: 1, maxThreads: 1, ...shared, ...options }, logger);
};

export function createDeliveryPool(maxTasks: number, logger: Logger) {
  const pool = startMultiTaskPool('deliver', maxTasks, onDemandOptions, logger);
  return {
    /** @returns replies in order; a failed request is a reply, too @throws TaskAbortedError */
    send: (task: DeliveryTask) => pool.run<DeliveryReply[]>(task),
    /** Interrupted messages are sent again later. */
    close: () => pool.destroy(),
  };
}

/** All threads stay until the end, because starting one takes longer than many tasks. */
export function startFixedPool(name: 'fit' | 'rebuild', threads: number, options: PoolOptions) {
  const pool = startPool(name, { minThreads: threads, maxThreads: threads, ...options });
  let failure: unknown;
  // Otherwise a thread that cannot start would end the process.
  pool.on('error', (error) => {
    failure = error;
    void pool.destroy();
  });
  return {
    threads,
    run: async <Reply>(task: object): Promise<Reply> => {
      if (failure !== undefined) throw failure;
      return pool.run(task).catch((error: unknown) => {
        throw failure ?? error;
      });
    },
    close: () => pool.destroy(),
  };
}
