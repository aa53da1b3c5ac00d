import { on, once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { RawInsertFormat } from 'chdb';
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
  /** The answer is rows without head or tail: it may go out block by block. */
  readonly streamed: boolean;
  readonly insert: RowInsert | null;
}

/** Rows that go to the engine as one block of bytes: one insert, one deduplication token. */
export interface RowInsert {
  readonly table: string;
  readonly columns: readonly string[] | null;
  readonly format: RawInsertFormat;
  readonly rows: Uint8Array;
}

export interface WriteSummary {
  readonly writtenRows: number;
  readonly writtenBytes: number;
}

/** A job, or whether the following chunk is wanted: the thread never runs ahead of the socket. */
export type ToThread = EngineJob | boolean;

/** `loaded` comes first, once. */
export type FromThread =
  | 'loaded'
  | { readonly chunk: Uint8Array }
  | { readonly summary: WriteSummary | null }
  | { readonly failed: string };

/** Queries of one lane never wait for those of another. */
export type Lane = 'write' | 'read' | 'analyst';

/*
 * Engine calls block a thread of libuv's pool (4 unless UV_THREADPOOL_SIZE says more), so four queries run at most. One
 * writes: with six, rows of insertions at the same time came twice and others were lost (tried with chdb 3.4.0).
 */
const maxThreads: Readonly<Record<Lane, number>> = { write: 1, read: 2, analyst: 1 };
const maxWaiting = 200;

/** Takes one part of a result; resolves when the next one is wanted: false to stop. */
export type ResultSink = (bytes: Uint8Array) => Promise<boolean>;

/** What is done about queries that do not end. */
export interface Endings {
  /** Stops the query whose log_comment is this id, from outside its session. */
  readonly kill: (id: string) => void;
  /** A query with a limit lives on after it was interrupted: nothing but the end of the process ends it. */
  readonly overrun: (statement: string) => void;
  /** An engine thread died: the process must end, its parent starts it again. */
  readonly crash: (error: Error) => void;
}

/** Why a job is interrupted: its limit is over, or nobody waits for its answer. */
type Ending = 'late' | 'unread';

/** The engine ends most by itself, with an error that says why. */
const interruptAfterMs = 1000;
/** After its interruption a query with a limit may live so long: 5 s from the end of its limit, or of its reader. */
const maxLifeMs: Readonly<Record<Ending, number>> = { late: 5000 - interruptAfterMs, unread: 5000 };
/** A KILL finds a query only once it has started, so it is repeated until the query is gone. */
const interruptEveryMs = 250;

interface RunningJob {
  readonly job: EngineJob;
  ending: Ending | null;
  /** What happens next when a job with a limit does not end. */
  alarm?: NodeJS.Timeout;
  repeatedKill?: NodeJS.Timeout;
}

type EngineThread = ReturnType<typeof startThread>;

/** A thread that runs one job at a time. */
function startThread(dataDir: string, { kill, overrun, crash }: Endings) {
  const worker = new Worker(programPath('engine-thread.js'), { workerData: dataDir });
  worker.on('error', crash);
  let running: RunningJob | null = null;

  const post = (message: ToThread): void =>
    worker.postMessage(message, typeof message === 'boolean' ? [] : movable(message.insert?.rows));

  function interrupt(ending: Ending): void {
    if (running === null) return;
    post(false);
    // The first reason counts: a reader that disconnects late gives no more time.
    if (running.ending !== null) return;
    running.ending = ending;
    const { id, limitMs, statement } = running.job;
    running.repeatedKill = setInterval(kill, interruptEveryMs, id);
    if (limitMs !== null) {
      clearTimeout(running.alarm);
      running.alarm = setTimeout(overrun, maxLifeMs[ending], statement);
    }
    kill(id);
  }

  async function forward(bytes: Uint8Array, sink: ResultSink): Promise<void> {
    const from = running;
    const wanted = await sink(bytes).catch(() => false);
    // The sink of an interrupted job resolves last: by then the thread may run another one.
    if (running === from) post(wanted);
  }

  async function summaryOf(current: RunningJob, sink: ResultSink): Promise<WriteSummary | null> {
    for await (const [message] of on(worker, 'message') as AsyncIterable<[FromThread]>) {
      if (message === 'loaded') continue;
      if ('summary' in message) return message.summary;
      if ('failed' in message) throw failure(current, message.failed);
      void forward(message.chunk, sink);
    }
    throw new Error('an engine thread has ended');
  }

  return {
    isTaken: false,
    loaded: once(worker, 'message'),
    close: () => worker.terminate(),
    interrupt,
    async run(job: EngineJob, sink: ResultSink): Promise<WriteSummary | null> {
      const current: RunningJob = { job, ending: null };
      running = current;
      if (job.limitMs !== null) current.alarm = setTimeout(interrupt, job.limitMs + interruptAfterMs, 'late');
      post(job);
      try {
        return await summaryOf(current, sink);
      } finally {
        clearTimeout(current.alarm);
        clearInterval(current.repeatedKill);
        running = null;
      }
    },
  };
}

/** Large row buffers are moved, not copied; small ones may share Node's buffer pool and are copied. */
function movable(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

function failure({ ending, job }: RunningJob, message: string): Error {
  const isLate = ending === 'late' && message.includes('QUERY_WAS_CANCELLED');
  if (!isLate) return new Error(message);
  return new BridgeError(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${job.limitMs} ms`);
}

export type Lanes = ReturnType<typeof startLanes>;

interface Waiting {
  readonly resolve: (thread: EngineThread) => void;
  readonly reject: (error: Error) => void;
}

/** Threads of a lane, and who waits for one. */
function createLane(max: number, start: () => EngineThread) {
  const threads: EngineThread[] = [];
  const waiting: Waiting[] = [];

  function grow(): EngineThread {
    const thread = start();
    threads.push(thread);
    return thread;
  }

  /** A thread for one job; rejects with code 202 where too many wait. */
  function take(): Promise<EngineThread> {
    const idle = threads.find(({ isTaken }) => !isTaken) ?? (threads.length < max ? grow() : undefined);
    return new Promise((resolve, reject) => {
      if (idle !== undefined) {
        idle.isTaken = true;
        resolve(idle);
      } else if (waiting.length < maxWaiting) waiting.push({ resolve, reject });
      else reject(new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many queries are waiting'));
    });
  }

  function giveBack(thread: EngineThread): void {
    const next = waiting.shift();
    if (next === undefined) thread.isTaken = false;
    else next.resolve(thread);
  }

  return { threads, waiting, grow, take, giveBack };
}

/**
 * Opens the lanes, with the two threads that any service needs at once. Others are started when they are needed first: each
 * costs 50 ms of CPU. The data folder has to be open before the first job.
 */
export function startLanes(dataDir: string, endings: Endings) {
  const lane = (name: Lane) => createLane(maxThreads[name], () => startThread(dataDir, endings));
  const lanes = { write: lane('write'), read: lane('read'), analyst: lane('analyst') };
  lanes.write.grow();
  lanes.read.grow();
  const waiting = () => Object.values(lanes).map((one) => one.waiting);
  const threads = () => Object.values(lanes).flatMap((one) => one.threads);
  const busy = () => threads().filter(({ isTaken }) => isTaken);
  const loaded = () => Promise.all(threads().map((thread) => thread.loaded));

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
    run: async (name: Lane, job: EngineJob, sink: ResultSink, abandoned: AbortSignal) => {
      const thread = await lanes[name].take();
      const stop = (): void => thread.interrupt('unread');
      if (name !== 'write') abandoned.addEventListener('abort', stop);
      try {
        if (abandoned.aborted) throw queryCancelled();
        return await thread.run(job, sink);
      } finally {
        abandoned.removeEventListener('abort', stop);
        lanes[name].giveBack(thread);
      }
    },
    /** Jobs running or waiting. */
    active: (): number => busy().length + waiting().flat().length,
    /** Refuses what waits and interrupts what runs, writes too: for the end of the process. */
    interruptAll: () => {
      for (const { reject } of waiting().flatMap((queue) => queue.splice(0))) reject(queryCancelled());
      for (const thread of busy()) thread.interrupt('unread');
    },
    close: async (): Promise<void> => {
      await loaded();
      await Promise.all(threads().map((thread) => thread.close()));
    },
  };
}
