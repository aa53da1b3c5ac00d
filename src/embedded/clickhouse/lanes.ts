import { on, once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createLimiter } from '../../concurrency.js';
import { resolveProgram } from '../../programs.js';
import { BridgeError, queryCancelled } from './errors.js';

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
  readonly streamed: string | null;
  readonly insert: RowInsert | null;
}

/** `into` and `format` surround FROM INFILE. */
export interface RowInsert {
  readonly into: string;
  readonly format: string;
  readonly rows: Uint8Array;
}

export interface Written {
  readonly rows: number;
  readonly bytes: number;
}

/** `boolean`: whether to send the next chunk, so that the thread never runs ahead of the socket. */
export type ToThread = EngineJob | boolean;

/** `loaded` comes first, once. */
export type FromThread =
  | 'loaded'
  | { readonly chunk: Uint8Array }
  | { readonly written: Written | null }
  | { readonly failed: string };

export type Lane = 'write' | 'read' | 'analyst';

const maxWaiting = 200;
/** Longer than any client waits. */
const maxQueueWaitMs = 3_600_000;

/** Resolves when the next part can be sent; false: stop. */
export type ResultSink = (bytes: Uint8Array) => Promise<boolean>;

export interface Endings {
  readonly kill: (id: string) => void;
  /** Only the end of the process ends the query. */
  readonly overrun: (statement: string) => void;
  readonly crash: (error: Error) => void;
}

/** The first reason counts. */
type Ending = 'late' | 'unread';

/** Most queries end themselves first, with an error that names the limit. */
const interruptAfterMs = 1000;
/** Time until an overrun: 5 s after the limit, or after the reader disconnected. */
const maxLifeMs: Readonly<Record<Ending, number>> = { late: 5000 - interruptAfterMs, unread: 5000 };
/** KILL does not find a query before it starts, so repeat it. */
const interruptEveryMs = 250;

type EngineThread = ReturnType<typeof startThread>;

function startThread(dataDir: string, { kill, overrun, crash }: Endings) {
  const worker = new Worker(resolveProgram('engine-thread.js'), { workerData: dataDir });
  worker.on('error', crash);
  const post = (message: ToThread): void =>
    worker.postMessage(message, typeof message === 'boolean' ? [] : movable(message.insert?.rows));

  /** @param interruption abort it with an InterruptReason */
  async function run(job: EngineJob, sink: ResultSink, ending: AbortController): Promise<Written | null> {
    const { id, limitMs, statement } = job;
    const { signal } = ending;
    let isOver = false;
    let repeatedKill: NodeJS.Timeout | undefined;
    let alarm =
      limitMs === null ? undefined : setTimeout(() => ending.abort('late'), limitMs + interruptAfterMs);

    const interrupt = (): void => {
      post(false);
      kill(id);
      repeatedKill = setInterval(kill, interruptEveryMs, id);
      clearTimeout(alarm);
      if (limitMs !== null) alarm = setTimeout(overrun, maxLifeMs[signal.reason as Ending], statement);
    };
    const forward = async (chunk: Uint8Array): Promise<void> => {
      const wanted = await sink(chunk).catch(() => false);
      // The sink of an interrupted job may resolve when the thread runs another job.
      if (!isOver) post(wanted);
    };

    signal.addEventListener('abort', interrupt);
    post(job);
    try {
      for await (const [message] of on(worker, 'message') as AsyncIterable<[FromThread]>) {
        if (message === 'loaded') continue;
        if ('written' in message) return message.written;
        if ('failed' in message) throw failure(job, signal, message.failed);
        void forward(message.chunk);
      }
      throw new Error('an engine thread has ended');
    } finally {
      isOver = true;
      clearTimeout(alarm);
      clearInterval(repeatedKill);
      signal.removeEventListener('abort', interrupt);
    }
  }

  return { isTaken: false, loaded: once(worker, 'message'), run, close: () => worker.terminate() };
}

/** Small buffers may share Node's buffer pool and are copied. */
function movable(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

function failure({ limitMs }: EngineJob, signal: AbortSignal, message: string): Error {
  const isLate = signal.reason === 'late' && message.includes('QUERY_WAS_CANCELLED');
  if (!isLate) return new Error(message);
  return new BridgeError(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${limitMs} ms.`);
}

/** The last assignment counts. */
const withOneThread = (job: EngineJob): EngineJob => ({
  ...job,
  assignments: [...job.assignments, 'max_threads = 1'],
});

const rejectionMessage = 'Too many queries are waiting';
const refuse = (): never => {
  throw new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', rejectionMessage);
};

function createLane(max: number) {
  const bounds = { maxRunning: max, maxRunningOfTenant: max, maxQueuedOfTenant: maxWaiting, maxQueueWaitMs };
  return { limit: createLimiter({ ...bounds, rejectionMessage }), threads: [] as EngineThread[] };
}

export type Lanes = ReturnType<typeof startLanes>;

/** Starts two threads, and others on first use: each costs 50 ms of CPU. */
export function startLanes(dataDir: string, endings: Endings) {
  // Each engine call blocks a pool thread, so at most four queries run. Only one writes: with six, concurrent
  // inserts duplicated and lost rows (chdb 3.4.0).
  const lanes = { write: createLane(1), read: createLane(2), analyst: createLane(1) };
  const jobs = new Map<AbortController, Lane>();
  const start = (lane: Lane): EngineThread => {
    const thread = startThread(dataDir, endings);
    lanes[lane].threads.push(thread);
    return thread;
  };
  start('write');
  start('read');
  const threads = () => Object.values(lanes).flatMap((lane) => lane.threads);
  const loaded = () => Promise.all(threads().map((thread) => thread.loaded));

  const analystsWait = (): boolean => [...jobs.values()].filter((lane) => lane === 'analyst').length > 1;

  async function runOnThread(lane: Lane, job: EngineJob, sink: ResultSink, ending: AbortController) {
    const thread = lanes[lane].threads.find(({ isTaken }) => !isTaken) ?? start(lane);
    thread.isTaken = true;
    try {
      return await thread.run(job, sink, ending);
    } finally {
      thread.isTaken = false;
    }
  }

  return {
    /**
     * Wait for it before the process ends: a thread that is stopped while it loads the engine hangs (chdb
     * 3.4.0).
     */
    loaded,
    /**
     * Rejects with the engine's text (`Code: …`), or code 202 if the queue is full.
     * @param disconnected drops a queued job, but a running write completes
     */
    run: async (lane: Lane, job: EngineJob, sink: ResultSink, abandoned: AbortSignal) => {
      const ending = new AbortController();
      if (lane !== 'write') abandoned.addEventListener('abort', () => ending.abort('unread'));
      const work = async (): Promise<Written | null> => {
        if (abandoned.aborted || ending.signal.aborted) throw queryCancelled();
        const crowded = lane === 'analyst' && analystsWait();
        return runOnThread(lane, crowded ? withOneThread(job) : job, sink, ending);
      };
      jobs.set(ending, lane);
      return lanes[lane].limit('', work, refuse).finally(() => jobs.delete(ending));
    },
    active: (): number => jobs.size,
    /** For the end of the process. Also interrupts writes and queued jobs. */
    interruptAll: () => {
      for (const ending of jobs.keys()) ending.abort('unread');
    },
    close: async (): Promise<void> => {
      await loaded();
      await Promise.all(threads().map((thread) => thread.close()));
    },
  };
}
