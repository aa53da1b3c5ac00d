import { EventEmitter } from 'node:events';
import { Piscina } from 'piscina';
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
export const anyThread: NonNullable<PoolOptions['loadBalancer']> = (_task, [thread]) => thread ?? null;

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
