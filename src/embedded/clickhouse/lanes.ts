import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { programPath } from '../../programs.js';
import { BridgeError, limitReached, queryCancelled } from './errors.js';
import type { EngineJob, FromThread, ToThread, WriteSummary } from './messages.js';

/** Queries of one lane never wait for those of another. */
export type Lane = 'write' | 'read' | 'analyst';

/*
 * Engine calls block a thread of libuv's pool (4 unless UV_THREADPOOL_SIZE says more), so four
 * queries run at most: together these fit without one lane starving another. The parent may set a larger
 * pool so that gzip, which uses it too, never waits for a query.
 */
/** One writes: with six, rows of insertions at the same time came twice and others were lost (tried with chdb 3.4.0). */
const threadsOf: Readonly<Record<Lane, number>> = { write: 1, read: 2, analyst: 1 };
const maxWaiting = 200;

/** Where a result goes. `chunk` resolves when the next one is wanted: false to stop. */
export interface ResultSink {
  chunk(bytes: Uint8Array): Promise<boolean>;
}

export interface Lanes {
  /**
   * Runs a job to its end. Rejects with the engine's text (`Code: …`), or code 202 when the lane's queue
   * is full. `abandoned` tells that nobody waits any more: a queued job is then not started.
   */
  run(lane: Lane, job: EngineJob, sink: ResultSink, abandoned: AbortSignal): Promise<WriteSummary | null>;
  /** Jobs running or waiting. */
  active(): number;
  /** Refuses what waits and interrupts what runs, writes too: for the end of the process. */
  interruptAll(): void;
  /**
   * Resolves when no thread is loading the engine. The process must not end before: a thread that is stopped while it loads
   * ends in N-API's fatal error, and the engine's own handler of that signal hangs (tried with chdb 3.4.0).
   */
  loaded(): Promise<unknown>;
  close(): Promise<void>;
}

interface Task {
  readonly job: EngineJob;
  readonly sink: ResultSink;
  readonly abandoned: AbortSignal;
  readonly resolve: (summary: WriteSummary | null) => void;
  readonly reject: (error: Error) => void;
}

interface EngineThread {
  task: Task | null;
  /** Of a task with a limit: what happens next when it does not end. */
  alarm?: NodeJS.Timeout | undefined;
  /** Why the task was interrupted, if it was. */
  ending: Ending | null;
  readonly worker: Worker;
  readonly loaded: Promise<unknown>;
}

interface Pool {
  /** Those that were started so far. */
  readonly threads: EngineThread[];
  readonly waiting: Task[];
  /** The next one; null where the lane has all that it may have. */
  readonly grow: () => EngineThread | null;
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

/** The engine ends most by itself, with an error that says why. */
const interruptAfterMs = 1000;
type Ending = 'late' | 'unread';
/** After its interruption a query with a limit may live so long: 5 s from the end of its limit, or of its reader. */
const patienceMs: Readonly<Record<Ending, number>> = { late: 5000 - interruptAfterMs, unread: 5000 };

/** A KILL finds a query only once it has started, so it is repeated until the query is gone. */
const interruptEveryMs = 250;

function post(thread: EngineThread, message: ToThread): void {
  thread.worker.postMessage(message, message.type === 'run' ? movable(message.job.insert?.rows) : []);
}

/** Large row buffers are moved, not copied; small ones may share Node's buffer pool and are copied. */
function movable(rows: Uint8Array | undefined): ArrayBuffer[] {
  const buffer = rows?.buffer;
  return buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize * 8 ? [buffer] : [];
}

/**
 * Opens the lanes, with the two threads that any service needs at once. Others are started when they are needed first: each
 * costs 50 ms of CPU. The data folder has to be open before the first job.
 */
export function startLanes(dataDir: string, endings: Endings): Lanes {
  const pools = Object.fromEntries(
    Object.entries(threadsOf).map(([lane, count]) => [lane, startPool(dataDir, count, endings)]),
  ) as Record<Lane, Pool>;
  for (const lane of ['write', 'read'] as const) pools[lane].grow();
  const threads = () => Object.values(pools).flatMap((pool) => pool.threads);
  const running = () => threads().filter((thread) => thread.task !== null);
  const loaded = () => Promise.all(threads().map((thread) => thread.loaded));

  return {
    run: (lane, job, sink, abandoned) =>
      new Promise((resolve, reject) => {
        const task = { job, sink, abandoned, resolve, reject };
        enqueue(pools[lane], task, endings);
        if (lane !== 'write') watchAbandoned(pools[lane], task, endings);
      }),
    active: () => Object.values(pools).reduce((sum, pool) => sum + pool.waiting.length, running().length),
    interruptAll: () => {
      for (const pool of Object.values(pools)) pool.waiting.splice(0).forEach(cancelTask);
      for (const thread of running()) interrupt(thread, endings, 'unread');
    },
    loaded,
    close: async () => {
      await loaded();
      await Promise.all(threads().map((thread) => thread.worker.terminate()));
    },
  };
}

function startPool(dataDir: string, count: number, endings: Endings): Pool {
  const threads: EngineThread[] = [];
  const waiting: Task[] = [];
  const grow = (): EngineThread | null => {
    if (threads.length === count) return null;
    const thread = startThread(dataDir, waiting, endings);
    threads.push(thread);
    return thread;
  };
  return { threads, waiting, grow };
}

function startThread(dataDir: string, waiting: Task[], endings: Endings): EngineThread {
  const worker = new Worker(programPath('engine-thread.js'), { workerData: dataDir });
  const thread: EngineThread = { worker, loaded: once(worker, 'message'), task: null, ending: null };
  worker.on('message', (message: FromThread) => onMessage(thread, waiting, message, endings));
  worker.on('error', endings.crash);
  return thread;
}

function enqueue(pool: Pool, task: Task, endings: Endings): void {
  if (pool.waiting.length >= maxWaiting) {
    task.reject(new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many queries are waiting'));
    return;
  }
  pool.waiting.push(task);
  const idle = pool.threads.find((thread) => thread.task === null) ?? pool.grow();
  if (idle !== null) startNext(idle, pool.waiting, endings);
}

function cancelTask(task: Task): void {
  task.reject(queryCancelled());
}

function startNext(thread: EngineThread, waiting: Task[], endings: Endings): void {
  let task = waiting.shift();
  while (task?.abandoned.aborted) {
    cancelTask(task);
    task = waiting.shift();
  }
  thread.task = task ?? null;
  thread.ending = null;
  if (task === undefined) return;
  const late = (): void => interrupt(thread, endings, 'late');
  if (task.job.limitMs !== null) thread.alarm = setTimeout(late, task.job.limitMs + interruptAfterMs);
  post(thread, { type: 'run', job: task.job });
}

/** Nobody waits for this answer any more: its thread is wanted by others. Writes are let finish. */
function watchAbandoned(pool: Pool, task: Task, endings: Endings): void {
  task.abandoned.addEventListener(
    'abort',
    () => {
      const thread = pool.threads.find((candidate) => candidate.task === task);
      if (thread !== undefined) interrupt(thread, endings, 'unread');
    },
    { once: true },
  );
}

function interrupt(thread: EngineThread, { kill, overrun }: Endings, ending: Ending): void {
  const task = thread.task;
  post(thread, { type: 'cancel' });
  // The first reason counts: a reader that goes away late gives no more time.
  if (task === null || thread.ending !== null) return;
  thread.ending = ending;
  const again = setInterval(() => {
    if (thread.task !== task) clearInterval(again);
    else kill(task.job.id);
  }, interruptEveryMs);
  if (task.job.limitMs !== null) {
    clearTimeout(thread.alarm);
    thread.alarm = setTimeout(() => overrun(task.job.statement), patienceMs[ending]);
  }
  kill(task.job.id);
}

async function forward(thread: EngineThread, task: Task, bytes: Uint8Array): Promise<void> {
  const wanted = await task.sink.chunk(bytes).catch(() => false);
  // Of a task that was interrupted meanwhile the sink tells last: by then the thread may run another one.
  if (thread.task === task) post(thread, { type: wanted ? 'next' : 'cancel' });
}

function onMessage(thread: EngineThread, waiting: Task[], message: FromThread, endings: Endings): void {
  const task = thread.task;
  if (task === null || message.type === 'loaded') return;
  if (message.type === 'chunk') return void forward(thread, task, message.bytes);
  clearTimeout(thread.alarm);
  if (message.type === 'done') task.resolve(message.summary);
  else task.reject(failure(thread, message.message));
  startNext(thread, waiting, endings);
}

function failure({ task, ending }: EngineThread, message: string): Error {
  const isLate = ending === 'late' && message.includes('QUERY_WAS_CANCELLED');
  return isLate ? limitReached(task?.job.limitMs) : new Error(message);
}
