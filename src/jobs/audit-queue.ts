/** The BullMQ side of audits. */
import { auditQueueName } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { type ScheduledJob, startScheduledJob } from './scheduled.js';

const hourMs = 3_600_000;
const attempts = 5;
const firstRetryMs = 30_000;

export interface ScheduledAuditsOptions {
  redisUrl: string;
  /** 0: none. */
  intervalHours: number;
  run(signal: AbortSignal): Promise<void>;
  logger: Logger;
}

/** Closing aborts a run, which a later process repeats. @throws nothing while Redis is away */
export const startScheduledAudits = ({
  intervalHours,
  logger,
  ...rest
}: ScheduledAuditsOptions): ScheduledJob =>
  startScheduledJob({
    ...rest,
    name: auditQueueName,
    everyMs: Math.round(intervalHours * hourMs),
    attempts,
    firstRetryMs,
    failed: (error, attempt) => logger.warn({ err: error, attempt }, 'an audit could not compare anything'),
    logger,
  });
