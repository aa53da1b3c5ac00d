import { EventEmitter } from 'node:events';
import { Piscina } from 'piscina';
import type { DeliveryReply, DeliveryTask } from '../contracts/delivery-tasks.js';
import { unavailable } from '../errors.js';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';

type PoolOptions = NonNullable<ConstructorParameters<typeof Piscina>[0]>;

/** Atomics off: an idle worker would sleep in Atomics.wait, and its Redis connection would stall. */
const startPool = (
  name: 'track' | 'forecast' | 'retract' | 'deliver' | 'fit' | 'rebuild',
  options: PoolOptions,
): Piscina =>
  new Piscina({
    ...{ filename: programPath('entry.cjs'), name, atomics: 'disabled', recordTiming: false },
    ...options,
  });

/** A task that takes longer never ends; a webhook has the same time, and some for its thread to start. */
const maxTaskMs = { track: 15_000, forecast: 15_000, retract: 15_000, deliver: 30_000 } as const;

/** Piscina's own gives a thread nothing beside a task that can be aborted, as all of `ServingThreads` can. */
const anyThread: NonNullable<PoolOptions['loadBalancer']> = (_task, [thread]) => thread ?? null;

/** A task took too long, or shared its thread with one that did: the thread was ended. */
export class TaskAborted extends Error {}

type Served<Reply> = Exclude<Reply, { readonly unavailable: string }>;

/** A thread's reply. @throws ApiError UNAVAILABLE, as which the thread's own cannot cross the boundary */
export function served<Reply extends object>(reply: Reply): Served<Reply> {
  if ('unavailable' in reply) throw unavailable(String(reply.unavailable));
  return reply as Served<Reply>;
}

/** Threads that serve requests: every task settles in bounded time. */
export class ServingThreads {
  private readonly pool: Piscina;
  /** Aborted tasks so far: a task that fails while another is aborted lost its thread. */
  private aborted = 0;

  constructor(
    private readonly name: keyof typeof maxTaskMs,
    options: PoolOptions,
    logger: Logger,
  ) {
    // Without a listener a thread that cannot be started (no descriptors, no memory) ends the process.
    this.pool = startPool(name, options).on('error', (error) =>
      logger.error({ err: error }, 'a worker thread cannot be started'),
    );
  }

  get workers() {
    return this.pool.threads;
  }

  /** @throws TaskAborted, and what the task throws */
  async run<Reply>(task: unknown, transferList: ArrayBuffer[] = []): Promise<Reply> {
    // Not an AbortSignal: V8 keeps each of those until it collects all garbage, which it then does often.
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

  /** Like `run`, for callers that may retry. @throws ApiError UNAVAILABLE with `tooLong` if aborted */
  async ask<Reply extends object>(task: unknown, tooLong: string): Promise<Served<Reply>> {
    const reply = await this.run<Reply>(task).catch((error: unknown) => {
      throw error instanceof TaskAborted ? unavailable(tooLong, error) : error;
    });
    return served(reply);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  /** Ends the threads whatever they do: for tasks that somebody repeats. What runs rejects. */
  destroy(): Promise<void> {
    return this.pool.destroy();
  }
}

/** Started when there is work: nobody else needs the memory. */
export const onDemand = { minThreads: 0, maxThreads: 1, idleTimeout: 60_000 };

/** One thread that runs several tasks at the same time. */
export const startSharedThread = (
  name: 'track' | 'forecast' | 'deliver',
  tasks: number,
  options: PoolOptions,
  logger: Logger,
) => {
  const shared = { concurrentTasksPerWorker: tasks, maxQueue: tasks, loadBalancer: anyThread };
  return new ServingThreads(name, { minThreads: 1, maxThreads: 1, ...shared, ...options }, logger);
};

/**
 * The thread that sends webhooks.
 * @param together most tasks that are in flight at a time
 */
export function createSendingThread(together: number, logger: Logger) {
  const thread = startSharedThread('deliver', together, onDemand, logger);
  return {
    /** @returns of each message, in their order. @throws TaskAborted, and what is a defect; a receiver's failure is a reply */
    send: (task: DeliveryTask) => thread.run<DeliveryReply[]>(task),
    /** Waits for no receiver: whoever is given a message again sends it. */
    close: () => thread.destroy(),
  };
}

/** Threads of one run: all stay until its end, for one takes longer to start than many a task to run. */
export function startRunThreads(name: 'fit' | 'rebuild', threads: number, options: PoolOptions) {
  const pool = startPool(name, { minThreads: threads, maxThreads: threads, ...options });
  let failure: unknown;
  // A thread that cannot be started would end the process, and what waits for it would wait for ever.
  pool.on('error', (error) => {
    failure = error;
    void pool.destroy();
  });
  return {
    threads,
    /** @throws what the task throws, or why the threads cannot be started */
    run: async <Reply>(task: object): Promise<Reply> => {
      if (failure !== undefined) throw failure;
      return pool.run(task).catch((error: unknown) => {
        throw failure ?? error;
      });
    },
    close: () => pool.destroy(),
  };
}
