/** The BullMQ side of retention. */
import { retentionQueueName } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { type ScheduledJob, startScheduledJob } from './scheduled.js';

/** There is something to do once a month; a month that had to wait is soon tried again. */
const everyMs = 6 * 3_600_000;
const attempts = 3;
const firstRetryMs = 60_000;

export interface ScheduledRetentionOptions {
  redisUrl: string;
  /** Whether answers are ever dropped. */
  enabled: boolean;
  run(signal: AbortSignal): Promise<void>;
  logger: Logger;
}

/** Closing ends a run between two steps, and a later one goes on. @throws nothing while Redis is away */
export const startScheduledRetention = ({
  enabled,
  logger,
  ...rest
}: ScheduledRetentionOptions): ScheduledJob =>
  startScheduledJob({
    ...rest,
    name: retentionQueueName,
    everyMs: enabled ? everyMs : 0,
    attempts,
    firstRetryMs,
    failed: (error, attempt) => logger.warn({ err: error, attempt }, 'old answers could not be dropped yet'),
    logger,
  });
