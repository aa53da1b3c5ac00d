import { on, once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createLimiter } from '../../concurrency.js';
import { resolveProgram } from '../../programs.js';
import { BridgeError, createCancelledError } from './errors.js';

export interface EngineJob {
  /** Unique in this process. KILL QUERY finds it as log_comment. */
  readonly id: string;
  readonly database: string;
  /** Escaped `name = literal` pairs for SET. */
  readonly assignments: readonly string[];
  /** 0: the service, 2: its GET requests, 1: an analyst. */
  readonly readonly: 0 | 1 | 2;
  readonly statement: string;
  /** Milliseconds; null: no limit. */
  readonly limitMs: number | null;
  readonly format: string;
  /** Null: the result is sent as a whole. */
  readonly streamFormat: string | null;
  readonly insert: RowInsert | null;
}

/** `into` and `format` surround FROM INFILE. */
export interface RowInsert {
  readonly into: string;
  readonly format: string;
  readonly rows: Uint8Array;
}

export interface InsertSummary {
  readonly rows: number;
  readonly bytes: number;
}

/** `boolean`: whether to send the next chunk, so that the thread never runs ahead of the socket. */
export type ThreadCommand = EngineJob | boolean;

/** `loaded` comes first, once. */
export type ThreadMessage =
  | 'loaded'
  | { readonly chunk: Uint8Array }
  | { readonly written: InsertSummary | null }
  | { readonly failed: string };

export type QueryLane = 'write' | 'read' | 'analyst';

const maxQueued = 200;
/** Longer than any client waits. */
const maxQueueWaitMs = 3_600_000;

/** Resolves when the next part can be sent; false: stop. */
export type ResultSink = (bytes: Uint8Array) => Promise<boolean>;

export interface EngineHandlers {
  readonly killQuery: (id: string) => void;
  /** Only the end of the process ends the query. */
  readonly reportOverrun: (statement: string) => void;
  readonly crash: (error: Error) => void;
}

/** The first reason counts. */
type InterruptReason = 'late' | 'unread';

/** Most queries end themselves first, with an error that names the limit. */
const interruptAfterMs = 1000;
/** Time until an overrun: 5 s after the limit, or after the reader disconnected. */
const maxInterruptedMs: Readonly<Record<InterruptReason, number>> = {
  late: 5000 - interruptAfterMs,
  unread: 5000,
};
/** KILL does not find a query before it starts, so repeat it. */
const killRepeatMs = 250;

type EngineThread = ReturnType<typeof startThread>;

function startThread(dataDir: string, { killQuery, reportOverrun, crash }: EngineHandlers) {
  const worker = new Worker(resolveProgram('engine-thread.js'), { workerData: dataDir });
  worker.on('error', crash);
  const post = (message: ThreadCommand): void =>
    worker.postMessage(message, typeof message === 'boolean' ? [] : listTransferables(message.insert?.rows));

  /** @param interruption abort it with an InterruptReason */
  async function run(
    job: EngineJob,
    sink: ResultSink,
    interruption: AbortController,
  ): Promise<InsertSummary | null> {
    const { id, limitMs, statement } = job;
    const { signal } = interruption;
    let isFinished = false;
    let repeatedKill: NodeJS.Timeout | undefined;
    let timer =
      limitMs === null ? undefined : setTimeout(() => interruption.abort('late'), limitMs + interruptAfterMs);

    const interrupt = (): void => {
      post(false);
      killQuery(id);
      repeatedKill = setInterval(killQuery, killRepeatMs, id);
      clearTimeout(timer);
      if (limitMs !== null)
        timer = setTimeout(reportOverrun, maxInterruptedMs[signal.reason as InterruptReason], statement);
    };
    const forward = async (chunk: Uint8Array): Promise<void> => {
      const isWanted = await sink(chunk).catch(() => false);
      // The sink of an interrupted job may resolve when the thread runs another job.
      if (!isFinished) post(isWanted);
    };

    signal.addEventListener('abort', interrupt);
    post(job);
    try {
      for await (const [message] of on(worker, 'message') as AsyncIterable<[ThreadMessage]>) {
        if (message === 'loaded') continue;
        if ('written' in message) return message.written;
        if ('failed' in message) throw toJobError(job, signal, message.failed);
        void forward(message.chunk);
      }
      throw new Error('an engine thread exited');
    } finally {
      isFinished = true;
      clearTimeout(timer);
      clearInterval(repeatedKill);
      signal.removeEventListener('abort', interrupt);
    }
  }

  return { isBusy: false, loaded: once(worker, 'message'), run, close: () => worker.terminate() };
}

/** Small buffers may share Node's buffer pool and are copied. */
function listTransferables(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

function toJobError({ limitMs }: EngineJob, signal: AbortSignal, message: string): Error {
  const isLate = signal.reason === 'late' && message.includes('QUERY_WAS_CANCELLED');
  if (!isLate) return new Error(message);
  return new BridgeError(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${limitMs} ms.`);
}

/** The last assignment counts. */
const withOneThread = (job: EngineJob): EngineJob => ({
  ...job,
  assignments: [...job.assignments, 'max_threads = 1'],
});

const rejectionMessage = 'Too many queries are queued; retry later';
const rejectQueueFull = (): never => {
  throw new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', rejectionMessage);
};

function createLane(max: number) {
  const limits = { maxRunning: max, maxRunningOfTenant: max, maxQueuedOfTenant: maxQueued, maxQueueWaitMs };
  return { limit: createLimiter({ ...limits, rejectionMessage }), threads: [] as EngineThread[] };
}

export type QueryLanes = ReturnType<typeof startLanes>;

/** Starts two threads, and others on first use: each costs 50 ms of CPU. Open the data folder before the first job. */
export function startLanes(dataDir: string, handlers: EngineHandlers) {
  // Each engine call blocks a pool thread, so at most four queries run. Only one writes: with six, concurrent
  // inserts duplicated and lost rows (chdb 3.4.0).
  const lanes = { write: createLane(1), read: createLane(2), analyst: createLane(1) };
  const jobs = new Map<AbortController, QueryLane>();
  const start = (lane: QueryLane): EngineThread => {
    const thread = startThread(dataDir, handlers);
    lanes[lane].threads.push(thread);
    return thread;
  };
  start('write');
  start('read');
  const threads = () => Object.values(lanes).flatMap((lane) => lane.threads);
  const waitUntilLoaded = () => Promise.all(threads().map((thread) => thread.loaded));

  const hasQueuedAnalysts = (): boolean => [...jobs.values()].filter((lane) => lane === 'analyst').length > 1;

  async function runOnThread(
    lane: QueryLane,
    job: EngineJob,
    sink: ResultSink,
    interruption: AbortController,
  ) {
    const thread = lanes[lane].threads.find(({ isBusy }) => !isBusy) ?? start(lane);
    thread.isBusy = true;
    try {
      return await thread.run(job, sink, interruption);
    } finally {
      thread.isBusy = false;
    }
  }

  return {
    /**
     * Wait for it before the process ends: a thread that is stopped while it loads the engine hangs (chdb
     * 3.4.0).
     */
    loaded: waitUntilLoaded,
    /**
     * Rejects with the engine's text (`Code: …`), or code 202 if the queue is full.
     * @param disconnected drops a queued job, but a running write completes
     */
    run: async (lane: QueryLane, job: EngineJob, sink: ResultSink, disconnected: AbortSignal) => {
      const interruption = new AbortController();
      if (lane !== 'write') disconnected.addEventListener('abort', () => interruption.abort('unread'));
      const work = async (): Promise<InsertSummary | null> => {
        if (disconnected.aborted || interruption.signal.aborted) throw createCancelledError();
        const isCrowded = lane === 'analyst' && hasQueuedAnalysts();
        return runOnThread(lane, isCrowded ? withOneThread(job) : job, sink, interruption);
      };
      jobs.set(interruption, lane);
      return lanes[lane].limit('', work, rejectQueueFull).finally(() => jobs.delete(interruption));
    },
    countJobs: (): number => jobs.size,
    /** For the end of the process. Also interrupts writes and queued jobs. */
    interruptAll: () => {
      for (const interruption of jobs.keys()) interruption.abort('unread');
    },
    close: async (): Promise<void> => {
      await waitUntilLoaded();
      await Promise.all(threads().map((thread) => thread.close()));
    },
  };
}
