/** Work that comes every so often, wherever: fits, audits, and what is dropped for its age. */
import { auditQueueName, fitQueueName, retentionQueueName } from '../contracts/jobs.js';
import type { ScheduledJobOptions } from './schedule.js';
import { type ScheduledJob, startScheduledJob } from './scheduled.js';

interface Work extends Pick<ScheduledJobOptions, 'name' | 'attempts' | 'firstRetryMs'> {
  readonly one: string;
  /** What is told of a run that failed. */
  readonly failure: string;
}

const retries = { attempts: 5, firstRetryMs: 30_000 };

export const fitWork: Work = { name: fitQueueName, ...retries, one: 'fit', failure: 'a fit failed' };

export const auditWork: Work = {
  name: auditQueueName,
  ...retries,
  one: 'audit',
  failure: 'an audit could not compare anything',
};

export const retentionWork: Work = {
  ...{ name: retentionQueueName, attempts: 3, firstRetryMs: 60_000 },
  one: 'retention',
  failure: 'old answers could not be dropped yet',
};

export interface WorkOptions extends Pick<ScheduledJobOptions, 'redisUrl' | 'everyMs' | 'run' | 'logger'> {
  /** Why Redis cannot be worked with now; null where it can. */
  blocked(): string | null;
}

/** Closing ends a run, which a later process repeats or goes on with. @throws nothing while Redis is away */
export function scheduleWork(
  { one, failure, ...schedule }: Work,
  { blocked, run, ...options }: WorkOptions,
): ScheduledJob {
  return startScheduledJob({
    ...schedule,
    ...options,
    run: async (signal) => {
      const reason = blocked();
      if (reason !== null) throw new Error(`no ${one}: ${reason}`);
      await run(signal);
    },
    failed: (error, attempt) => options.logger.warn({ err: error, attempt }, failure),
  });
}
