// Scheduled fits in a process of their own whose run never ends, for tests that kill it: REDIS_URL.
import { startScheduledFits } from '../../src/jobs/fit-queue.js';
import { createLogger } from '../../src/telemetry.js';

const [, , redisUrl = ''] = process.argv;
startScheduledFits({
  redisUrl,
  intervalHours: 24,
  run: () => {
    process.stdout.write('running\n');
    return new Promise(() => undefined);
  },
  logger: createLogger('fatal', 'fit-process'),
});
