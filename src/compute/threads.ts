import { EventEmitter } from 'node:events';
import { Piscina } from 'piscina';
import type { DeliveryReply, DeliveryTask } from '../contracts/delivery-tasks.js';
import { unavailable } from '../errors.js';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';

type PoolOptions = NonNullable<ConstructorParameters<typeof Piscina>[0]>;

/** Atomics off: an idle worker would block in Atomics.wait, and its Redis connection would stall. */
const startPool = (
  name: 'track' | 'forecast' | 'retract' | 'deliver' | 'fit' | 'rebuild',
  options: PoolOptions,
): Piscina =>
  new Piscina({
    ...{ filename: programPath('entry.cjs'), name, atomics: 'disabled', recordTiming: false },
    ...options,
  });

/** Longer tasks never end. A webhook has the same time plus its thread's start. */
const maxTaskMs = { track: 15_000, forecast: 15_000, retract: 15_000, deliver: 30_000 } as const;

/** Piscina's balancer gives a thread no second task if tasks can be aborted, as in `ServingThreads`. */
const anyThread: NonNullable<PoolOptions['loadBalancer']> = (_task, [thread]) => thread ?? null;

/** A task, or another one in its thread, took too long, and the thread was ended. */
export class TaskAborted extends Error {}

type Served<Reply> = Exclude<Reply, { readonly unavailable: string }>;

/** @throws ApiError UNAVAILABLE; an ApiError itself cannot cross the thread boundary */
export function served<Reply extends object>(reply: Reply): Served<Reply> {
  if ('unavailable' in reply) throw unavailable(String(reply.unavailable));
  return reply as Served<Reply>;
}

/** Every task settles in bounded time. */
export class ServingThreads {
  private readonly pool: Piscina;
  /** A task that fails during another one's abort lost its thread. */
  private aborted = 0;

  constructor(
    private readonly name: keyof typeof maxTaskMs,
    options: PoolOptions,
    logger: Logger,
  ) {
    // Without a listener, a thread that cannot start (no descriptors, no memory) ends the process.
    this.pool = startPool(name, options).on('error', (error) =>
      logger.error({ err: error }, 'a worker thread cannot be started'),
    );
  }

  get workers() {
    return this.pool.threads;
  }

  /** @throws TaskAborted, and what the task throws */
  async run<Reply>(task: unknown, transferList: ArrayBuffer[] = []): Promise<Reply> {
    // Not an AbortSignal: V8 keeps each until a full garbage collection, which it then runs often.
    const signal = new EventEmitter();
    const before = this.aborted;
    const timer = setTimeout(() => {
      this.aborted += 1;
      signal.emit('abort');
    }, maxTaskMs[this.name]);
    try {
      return await this.pool.run(task, { signal, transferList });
    } catch (error) {
      if (this.aborted === before) throw error;
      throw new TaskAborted('a task took too long: its thread was ended', { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /** For callers that may retry. @throws ApiError UNAVAILABLE with `tooLong` if aborted */
  async ask<Reply extends object>(task: unknown, tooLong: string): Promise<Served<Reply>> {
    const reply = await this.run<Reply>(task).catch((error: unknown) => {
      throw error instanceof TaskAborted ? unavailable(tooLong, error) : error;
    });
    return served(reply);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  /** For tasks that will be repeated. Running tasks reject. */
  destroy(): Promise<void> {
    return this.pool.destroy();
  }
}

/** Started for work and ended when idle, to save memory. */
export const onDemand = { minThreads: 0, maxThreads: 1, idleTimeout: 60_000 };

export const startSharedThread = (
  name: 'track' | 'forecast' | 'deliver',
  tasks: number,
  options: PoolOptions,
  logger: Logger,
) => {
  const shared = { concurrentTasksPerWorker: tasks, maxQueue: tasks, loadBalancer: anyThread };
  return new ServingThreads(name, { minThreads: 1, maxThreads: 1, ...shared, ...options }, logger);
};

/** Sends webhooks. @param together maximum number of tasks in flight */
export function createSendingThread(together: number, logger: Logger) {
  const thread = startSharedThread('deliver', together, onDemand, logger);
  return {
    /** @returns replies in order; a receiver's failure is a reply @throws TaskAborted, and defects */
    send: (task: DeliveryTask) => thread.run<DeliveryReply[]>(task),
    /** Does not wait for receivers: interrupted messages are sent again later. */
    close: () => thread.destroy(),
  };
}

/** All stay until the end, because starting takes longer than many tasks. */
export function startRunThreads(name: 'fit' | 'rebuild', threads: number, options: PoolOptions) {
  const pool = startPool(name, { minThreads: threads, maxThreads: threads, ...options });
  let failure: unknown;
  // Otherwise a thread that cannot start would end the process, and callers would wait forever.
  pool.on('error', (error) => {
    failure = error;
    void pool.destroy();
  });
  return {
    threads,
    /** @throws what the task throws, or why the threads cannot start */
    run: async <Reply>(task: object): Promise<Reply> => {
      if (failure !== undefined) throw failure;
      return pool.run(task).catch((error: unknown) => {
        throw failure ?? error;
      });
    },
    close: () => pool.destroy(),
  };
}
