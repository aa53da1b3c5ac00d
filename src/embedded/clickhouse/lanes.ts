import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { programPath } from '../../programs.js';
import { BridgeError, limitReached, queryCancelled } from './errors.js';
import type { EngineJob, FromThread, ToThread, WriteSummary } from './messages.js';

/** Queries of one lane never wait for those of another. */
export type Lane = 'write' | 'read' | 'analyst';

/*
 * Engine calls block a thread of libuv's pool (4 unless UV_THREADPOOL_SIZE says more), so four queries run at most:
 * together these fit without one lane starving another. The parent may set a larger pool so that gzip, which uses it too,
 * never waits for a query. One writes: with six, rows of insertions at the same time came twice and others were lost
 * (tried with chdb 3.4.0).
 */
const maxThreads: Readonly<Record<Lane, number>> = { write: 1, read: 2, analyst: 1 };
const maxWaiting = 200;

/** Where a result goes. `chunk` resolves when the next one is wanted: false to stop. */
export interface ResultSink {
  chunk(bytes: Uint8Array): Promise<boolean>;
}

/** What a lane does about queries that do not end. */
export interface Endings {
  /** Stops the query whose log_comment is this id, from outside its session. */
  readonly kill: (id: string) => void;
  /** A query with a limit lives on after it was interrupted: nothing but the end of the process ends it. */
  readonly overrun: (statement: string) => void;
  /** An engine thread died: the process must end, its parent starts it again. */
  readonly crash: (error: Error) => void;
}

interface Task {
  readonly job: EngineJob;
  readonly sink: ResultSink;
  readonly abandoned: AbortSignal;
  readonly resolve: (summary: WriteSummary | null) => void;
  readonly reject: (error: Error) => void;
}

/** Why a task is interrupted: its limit is over, or nobody waits for its answer. */
type Ending = 'late' | 'unread';

interface EngineThread {
  readonly worker: Worker;
  readonly loaded: Promise<unknown>;
  task: Task | null;
  /** Of a task with a limit: what happens next when it does not end. */
  alarm?: NodeJS.Timeout | undefined;
  ending: Ending | null;
}

/** The engine ends most by itself, with an error that says why. */
const interruptAfterMs = 1000;
/** After its interruption a query with a limit may live so long: 5 s from the end of its limit, or of its reader. */
const maxLifeMs: Readonly<Record<Ending, number>> = { late: 5000 - interruptAfterMs, unread: 5000 };
/** A KILL finds a query only once it has started, so it is repeated until the query is gone. */
const interruptEveryMs = 250;

export type Lanes = ReturnType<typeof startLanes>;

/**
 * Opens the lanes, with the two threads that any service needs at once. Others are started when they are needed first: each
 * costs 50 ms of CPU. The data folder has to be open before the first job.
 */
export function startLanes(dataDir: string, endings: Endings) {
  const lane = (name: Lane) => startLane(dataDir, maxThreads[name], endings);
  const lanes = { write: lane('write'), read: lane('read'), analyst: lane('analyst') };
  lanes.write.grow();
  lanes.read.grow();
  const all = Object.values(lanes);
  const threads = () => all.flatMap((one) => one.threads);

  /**
   * Resolves when no thread is loading the engine. The process must not end before: a thread that is stopped while it loads
   * ends in N-API's fatal error, and the engine's own handler of that signal hangs (tried with chdb 3.4.0).
   */
  const loaded = () => Promise.all(threads().map((thread) => thread.loaded));

  return {
    loaded,
    /**
     * Runs a job to its end. Rejects with the engine's text (`Code: …`), or code 202 when the lane's queue is full.
     * @param abandoned nobody waits any more: a queued job is then not started. Writes that run are let finish
     */
    run: (name: Lane, job: EngineJob, sink: ResultSink, abandoned: AbortSignal) =>
      new Promise<WriteSummary | null>((resolve, reject) => {
        const task = { job, sink, abandoned, resolve, reject };
        lanes[name].enqueue(task);
        if (name !== 'write')
          abandoned.addEventListener('abort', () => lanes[name].abandon(task), { once: true });
      }),
    /** Jobs running or waiting. */
    active: (): number => all.reduce((sum, one) => sum + one.active(), 0),
    /** Refuses what waits and interrupts what runs, writes too: for the end of the process. */
    interruptAll: () => {
      for (const one of all) one.interruptAll();
    },
    close: async (): Promise<void> => {
      await loaded();
      await Promise.all(threads().map((thread) => thread.worker.terminate()));
    },
  };
}

function startLane(dataDir: string, most: number, endings: Endings) {
  const threads: EngineThread[] = [];
  const waiting: Task[] = [];

  /** The lane's next thread; undefined where it has all that it may have. */
  function grow(): EngineThread | undefined {
    if (threads.length === most) return undefined;
    const worker = new Worker(programPath('engine-thread.js'), { workerData: dataDir });
    const thread: EngineThread = { worker, loaded: once(worker, 'message'), task: null, ending: null };
    worker.on('message', (message: FromThread) => onMessage(thread, message));
    worker.on('error', endings.crash);
    threads.push(thread);
    return thread;
  }

  function enqueue(task: Task): void {
    if (waiting.length >= maxWaiting) {
      task.reject(new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many queries are waiting'));
      return;
    }
    waiting.push(task);
    const idle = threads.find((thread) => thread.task === null) ?? grow();
    if (idle !== undefined) startNext(idle);
  }

  function startNext(thread: EngineThread): void {
    let task = waiting.shift();
    while (task?.abandoned.aborted) {
      task.reject(queryCancelled());
      task = waiting.shift();
    }
    thread.task = task ?? null;
    thread.ending = null;
    if (task === undefined) return;
    const { limitMs } = task.job;
    if (limitMs !== null)
      thread.alarm = setTimeout(() => interrupt(thread, 'late'), limitMs + interruptAfterMs);
    post(thread, { type: 'run', job: task.job });
  }

  function onMessage(thread: EngineThread, message: FromThread): void {
    const { task } = thread;
    if (task === null || message.type === 'loaded') return;
    if (message.type === 'chunk') return void forward(thread, task, message.bytes);
    clearTimeout(thread.alarm);
    if (message.type === 'done') task.resolve(message.summary);
    else task.reject(failure(thread, message.message));
    startNext(thread);
  }

  function interrupt(thread: EngineThread, ending: Ending): void {
    const { task } = thread;
    post(thread, { type: 'cancel' });
    // The first reason counts: a reader that disconnects late gives no more time.
    if (task === null || thread.ending !== null) return;
    thread.ending = ending;
    const again = setInterval(() => {
      if (thread.task !== task) clearInterval(again);
      else endings.kill(task.job.id);
    }, interruptEveryMs);
    if (task.job.limitMs !== null) {
      clearTimeout(thread.alarm);
      thread.alarm = setTimeout(() => endings.overrun(task.job.statement), maxLifeMs[ending]);
    }
    endings.kill(task.job.id);
  }

  return {
    threads,
    grow,
    enqueue,
    abandon: (task: Task): void => {
      const thread = threads.find((one) => one.task === task);
      if (thread !== undefined) interrupt(thread, 'unread');
    },
    active: (): number => waiting.length + threads.filter(({ task }) => task !== null).length,
    interruptAll: (): void => {
      for (const task of waiting.splice(0)) task.reject(queryCancelled());
      for (const thread of threads) if (thread.task !== null) interrupt(thread, 'unread');
    },
  };
}

function post({ worker }: EngineThread, message: ToThread): void {
  worker.postMessage(message, message.type === 'run' ? movable(message.job.insert?.rows) : []);
}

/** Large row buffers are moved, not copied; small ones may share Node's buffer pool and are copied. */
function movable(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

async function forward(thread: EngineThread, task: Task, bytes: Uint8Array): Promise<void> {
  const wanted = await task.sink.chunk(bytes).catch(() => false);
  // The sink of a task that was interrupted meanwhile resolves last: by then the thread may run another one.
  if (thread.task === task) post(thread, { type: wanted ? 'next' : 'cancel' });
}

function failure({ task, ending }: EngineThread, message: string): Error {
  const isLate = ending === 'late' && message.includes('QUERY_WAS_CANCELLED');
  return isLate ? limitReached(task?.job.limitMs) : new Error(message);
}
