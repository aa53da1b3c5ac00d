/** The BullMQ side of the journal. */
import { journalQueueName } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { type ScheduledJob, startScheduledJob } from './scheduled.js';

/** What waits is no older than this and a run; a part every so often is what ClickHouse merges with ease. */
const everyMs = 2000;

export interface JournalRunsOptions {
  redisUrl: string;
  run(signal: AbortSignal): Promise<unknown>;
  logger: Logger;
}

/** Below what a stall may last unseen; a run that has more to do than it gets done goes on with the next. */
const limitMs = 15_000;

/** A run that failed is not repeated: the next one takes up what it left. Trouble is told when it begins and ends. */
export function startJournalRuns({ redisUrl, run, logger }: JournalRunsOptions): ScheduledJob {
  let failing = false;
  return startScheduledJob({
    redisUrl,
    name: journalQueueName,
    everyMs,
    attempts: 1,
    firstRetryMs: everyMs,
    limitMs,
    run: async (signal) => {
      await run(signal);
      if (failing) logger.info('the journal reaches ClickHouse again');
      failing = false;
    },
    failed: (error) => {
      if (failing) logger.debug({ err: error }, 'the journal waits');
      else logger.warn({ err: error }, 'the journal waits: it does not reach ClickHouse');
      failing = true;
    },
    logger,
  });
}
