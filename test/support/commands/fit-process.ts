// Scheduled fits in a process of their own whose run never ends, for tests that kill it: REDIS_URL.
import { schedules, startScheduledRuns } from '../../../src/jobs/scheduled-runs.js';
import { createLogger } from '../../../src/logger.js';

const [, , redisUrl = ''] = process.argv;
startScheduledRuns(schedules.fit, {
  redisUrl,
  everyMs: 86_400_000,
  run: () => {
    process.stdout.write('running\n');
    return new Promise(() => undefined);
  },
  logger: createLogger('fatal', 'fit-process'),
});
