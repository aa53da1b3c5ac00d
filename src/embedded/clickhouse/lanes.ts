import { on, once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createLimiter } from '../../concurrency.js';
import { programPath } from '../../programs.js';
import { BridgeError, queryCancelled } from './errors.js';

/** What a request asks of the engine; made by the HTTP side, carried to an engine thread. */
export interface EngineJob {
  /** Unique in this process; also the query's log_comment, so that a KILL QUERY finds it. */
  readonly id: string;
  readonly database: string;
  /** `name = literal` pairs for SET, already escaped: settings and `param_` values. */
  readonly assignments: readonly string[];
  /** 0 for the writing account, 2 for its GET requests, 1 for an analyst. */
  readonly readonly: 0 | 1 | 2;
  readonly statement: string;
  /** How long it may run, in milliseconds; null: as long as it takes. */
  readonly limitMs: number | null;
  readonly format: string;
  /** The format (of `streamedFormat`) in which it is sent block by block; null: as a whole. */
  readonly streamed: string | null;
  readonly insert: RowInsert | null;
}

/** One insert, of one deduplication token: `into` and `format` are the statement before and behind FROM INFILE. */
export interface RowInsert {
  readonly into: string;
  readonly format: string;
  readonly rows: Uint8Array;
}

export interface Written {
  readonly rows: number;
  readonly bytes: number;
}

/** A job, or whether the following chunk is wanted: the thread never runs ahead of the socket. */
export type ToThread = EngineJob | boolean;

/** `loaded` comes first, once. */
export type FromThread =
  | 'loaded'
  | { readonly chunk: Uint8Array }
  | { readonly written: Written | null }
  | { readonly failed: string };

export type Lane = 'write' | 'read' | 'analyst';

/*
 * Engine calls block a thread of libuv's pool (4 unless UV_THREADPOOL_SIZE says more), so four queries run at most. One
 * writes: with six, rows of insertions at the same time came twice and others were lost (tried with chdb 3.4.0).
 */
const maxThreads: Readonly<Record<Lane, number>> = { write: 1, read: 2, analyst: 1 };
const maxWaiting = 200;
/** Longer than any client waits. */
const maxQueueWaitMs = 3_600_000;

/** Takes one part of a result; resolves when the next one is wanted: false to stop. */
export type ResultSink = (bytes: Uint8Array) => Promise<boolean>;

export interface Endings {
  /** Stops the query whose log_comment is this id, from outside its session. */
  readonly kill: (id: string) => void;
  /** A query with a limit lives on after it was interrupted: nothing but the end of the process ends it. */
  readonly overrun: (statement: string) => void;
  /** An engine thread died: the process must end, its parent starts it again. */
  readonly crash: (error: Error) => void;
}

/** Why a job is interrupted: its limit is over, or nobody waits for its answer. Reason of its abort; the first one counts. */
type Ending = 'late' | 'unread';

/** The engine ends most by itself, with an error that says why. */
const interruptAfterMs = 1000;
/** After its interruption a query with a limit may live so long: 5 s from the end of its limit, or of its reader. */
const maxLifeMs: Readonly<Record<Ending, number>> = { late: 5000 - interruptAfterMs, unread: 5000 };
/** A KILL finds a query only once it has started, so it is repeated until the query is gone. */
const interruptEveryMs = 250;

type EngineThread = ReturnType<typeof startThread>;

function startThread(dataDir: string, { kill, overrun, crash }: Endings) {
  const worker = new Worker(programPath('engine-thread.js'), { workerData: dataDir });
  worker.on('error', crash);
  const post = (message: ToThread): void =>
    worker.postMessage(message, typeof message === 'boolean' ? [] : movable(message.insert?.rows));

  /** Runs until the thread has done with it. @param ending aborted with an Ending to interrupt it */
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
      // The sink of an interrupted job resolves last: by then the thread may run another one.
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

/** Large row buffers are moved, not copied; small ones may share Node's buffer pool and are copied. */
function movable(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

function failure({ limitMs }: EngineJob, signal: AbortSignal, message: string): Error {
  const isLate = signal.reason === 'late' && message.includes('QUERY_WAS_CANCELLED');
  if (!isLate) return new Error(message);
  return new BridgeError(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${limitMs} ms.`);
}

/** While other analysts wait a query has one thread, the later assignment: the other cores are for those who answer. */
const withOneThread = (job: EngineJob): EngineJob => ({
  ...job,
  assignments: [...job.assignments, 'max_threads = 1'],
});

const refusal = 'Too many queries are waiting';
const refuse = (): never => {
  throw new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', refusal);
};

function createLane(max: number) {
  const bounds = { maxRunning: max, maxRunningOfTenant: max, maxQueuedOfTenant: maxWaiting, maxQueueWaitMs };
  return { limit: createLimiter({ ...bounds, refusal }), threads: [] as EngineThread[] };
}

export type Lanes = ReturnType<typeof startLanes>;

/** Starts two threads, the others on first use: each costs 50 ms of CPU. The data folder must be open before the first job. */
export function startLanes(dataDir: string, endings: Endings) {
  const lanes = {
    write: createLane(maxThreads.write),
    read: createLane(maxThreads.read),
    analyst: createLane(maxThreads.analyst),
  };
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
     * Resolves when no thread is loading the engine. The process must not end before: a thread that is stopped while it
     * loads ends in N-API's fatal error, and the engine's own handler of that signal hangs (tried with chdb 3.4.0).
     */
    loaded,
    /**
     * Runs a job to its end. Rejects with the engine's text (`Code: …`), or code 202 when the lane's queue is full.
     * @param abandoned nobody waits any more: a queued job is then not started. Writes that run are let finish
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
    /** Jobs running or waiting. */
    active: (): number => jobs.size,
    /** Interrupts what runs, writes too, and what waits when its turn comes: for the end of the process. */
    interruptAll: () => {
      for (const ending of jobs.keys()) ending.abort('unread');
    },
    close: async (): Promise<void> => {
      await loaded();
      await Promise.all(threads().map((thread) => thread.close()));
    },
  };
}
