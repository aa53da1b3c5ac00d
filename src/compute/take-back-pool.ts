/** The thread that replays learners without one answer; it is started when there is something to take back. */
import { Piscina } from 'piscina';
import type { TakeBackReply, TakeBackTask } from '../contracts/take-back-tasks.js';
import type { WorkerSettings } from '../contracts/tasks.js';
import type { HistoryRewriter } from '../services/take-back.js';
import type { Logger } from '../telemetry.js';
import { runServed } from './limited-run.js';
import { tellThreadFailures, workerEntry } from './worker-entry.js';

/** Far more than are let in at once (`inTurn`): Piscina's default queue has no bound. */
const maxQueue = 4;
/** It holds a connection and models, which nobody needs while nothing is taken back. */
const idleMs = 60_000;

export function createTakeBackPool(
  workerData: WorkerSettings,
  logger: Logger,
): HistoryRewriter & { close(): Promise<void> } {
  const pool = new Piscina({
    ...workerEntry('takeBack'),
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: idleMs,
    maxQueue,
    atomics: 'disabled',
    recordTiming: false,
    workerData,
  });
  tellThreadFailures(pool, logger);
  return {
    rewrite: (task: TakeBackTask) =>
      runServed<TakeBackReply>(pool, task, 'The replay took too long; try again later'),
    close: () => pool.close(),
  };
}
