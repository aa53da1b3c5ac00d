/** A job every so often, of which one runs at a time, wherever; begun anew where its runs do not come, or do not end. */
import { type ProgressWatch, watchProgress } from './progress-watch.js';
import { freeSchedule, type ScheduledJobOptions } from './schedule.js';
import { startRuns } from './scheduled-runs.js';

export interface ScheduledJob extends Pick<ProgressWatch, 'stalled' | 'counts'> {
  /** Gives the run its signal and waits for it; one that does not end is repeated by a later process. */
  close(): Promise<void>;
}

/** Asking costs Redis three commands. */
const lookMs = 5000;

/** @throws nothing while Redis is away: everything waits for it */
export function startScheduledJob(options: ScheduledJobOptions): ScheduledJob {
  const { name, logger } = options;
  let givenUp = 0;
  let isHung = false;
  const hooks = {
    ended: () => {
      isHung = false;
    },
    givenUp: () => {
      isHung = true;
      givenUp += 1;
    },
  };
  let runs = startRuns(options, hooks);
  const watch = watchProgress({
    name: `the schedule of ${name}`,
    lookMs,
    waiting: () => runs.overdue(),
    restart: async () => {
      await runs.close();
      await freeSchedule(options);
      runs = startRuns(options, hooks);
    },
    logger,
  });
  let closing: Promise<void> | undefined;
  return {
    stalled: () =>
      watch.stalled() ?? (isHung ? `a run of ${name} did not end in time and was given up` : null),
    // A run that was given up is a stall, and the next one begins anew.
    counts: () => ({ stalls: watch.counts().stalls + givenUp, restarts: watch.counts().restarts + givenUp }),
    close: () => {
      closing ??= watch.close().then(() => runs.close());
      return closing;
    },
  };
}
