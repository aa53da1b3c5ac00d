import { Worker } from 'node:worker_threads';
import { programPath } from '../../src/programs.js';
import { BridgeError, queryCancelled } from './errors.js';
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
  readonly worker: Worker;
}

interface Pool {
  /** Those that were started so far. */
  readonly threads: EngineThread[];
  readonly waiting: Task[];
  /** The next one; null where the lane has all that it may have. */
  readonly grow: () => EngineThread | null;
}

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
 * @param kill stops the query whose log_comment is this id, from outside its session
 * @param onCrash an engine thread died: the process must end, its parent starts it again
 */
export function startLanes(
  dataDir: string,
  kill: (id: string) => void,
  onCrash: (error: Error) => void,
): Lanes {
  const pools = Object.fromEntries(
    Object.entries(threadsOf).map(([lane, count]) => [lane, startPool(dataDir, count, onCrash)]),
  ) as Record<Lane, Pool>;
  for (const lane of ['write', 'read'] as const) pools[lane].grow();
  const threads = () => Object.values(pools).flatMap((pool) => pool.threads);
  const running = () => threads().filter((thread) => thread.task !== null);

  return {
    run: (lane, job, sink, abandoned) =>
      new Promise((resolve, reject) => {
        const task = { job, sink, abandoned, resolve, reject };
        enqueue(pools[lane], task);
        if (lane !== 'write') watchAbandoned(pools[lane], task, kill);
      }),
    active: () => Object.values(pools).reduce((sum, pool) => sum + pool.waiting.length, running().length),
    interruptAll: () => {
      for (const pool of Object.values(pools)) pool.waiting.splice(0).forEach(cancelTask);
      for (const thread of running()) interrupt(thread, kill);
    },
    close: async () => {
      await Promise.all(threads().map((thread) => thread.worker.terminate()));
    },
  };
}

function startPool(dataDir: string, count: number, onCrash: (error: Error) => void): Pool {
  const threads: EngineThread[] = [];
  const waiting: Task[] = [];
  const grow = (): EngineThread | null => {
    if (threads.length === count) return null;
    const thread = startThread(dataDir, waiting, onCrash);
    threads.push(thread);
    return thread;
  };
  return { threads, waiting, grow };
}

function startThread(dataDir: string, waiting: Task[], onCrash: (error: Error) => void): EngineThread {
  const worker = new Worker(programPath('engine-thread.js'), { workerData: dataDir });
  const thread: EngineThread = { worker, task: null };
  worker.on('message', (message: FromThread) => onMessage(thread, waiting, message));
  worker.on('error', onCrash);
  return thread;
}

function enqueue(pool: Pool, task: Task): void {
  if (pool.waiting.length >= maxWaiting) {
    task.reject(new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many queries are waiting'));
    return;
  }
  pool.waiting.push(task);
  const idle = pool.threads.find((thread) => thread.task === null) ?? pool.grow();
  if (idle !== null) startNext(idle, pool.waiting);
}

function cancelTask(task: Task): void {
  task.reject(queryCancelled());
}

function startNext(thread: EngineThread, waiting: Task[]): void {
  let task = waiting.shift();
  while (task?.abandoned.aborted) {
    cancelTask(task);
    task = waiting.shift();
  }
  thread.task = task ?? null;
  if (task !== undefined) post(thread, { type: 'run', job: task.job });
}

/** Nobody waits for this answer any more: its thread is wanted by others. Writes are let finish. */
function watchAbandoned(pool: Pool, task: Task, kill: (id: string) => void): void {
  task.abandoned.addEventListener(
    'abort',
    () => {
      const thread = pool.threads.find((candidate) => candidate.task === task);
      if (thread !== undefined) interrupt(thread, kill);
    },
    { once: true },
  );
}

function interrupt(thread: EngineThread, kill: (id: string) => void): void {
  const task = thread.task;
  const again = setInterval(() => {
    if (thread.task !== task || task === null) clearInterval(again);
    else kill(task.job.id);
  }, interruptEveryMs);
  post(thread, { type: 'cancel' });
  if (task !== null) kill(task.job.id);
}

async function forward(thread: EngineThread, task: Task, bytes: Uint8Array): Promise<void> {
  const wanted = await task.sink.chunk(bytes);
  post(thread, { type: wanted ? 'next' : 'cancel' });
}

function onMessage(thread: EngineThread, waiting: Task[], message: FromThread): void {
  const task = thread.task;
  if (task === null) return;
  if (message.type === 'chunk') {
    forward(thread, task, message.bytes).catch(() => post(thread, { type: 'cancel' }));
    return;
  }
  if (message.type === 'done') task.resolve(message.summary);
  else task.reject(new Error(message.message));
  startNext(thread, waiting);
}
