// Scheduled fits in a process of their own whose run never ends, for tests that kill it: REDIS_URL.
import { fitWork, scheduleWork } from '../../src/jobs/scheduled-work.js';
import { createLogger } from '../../src/telemetry.js';

const [, , redisUrl = ''] = process.argv;
scheduleWork(fitWork, {
  redisUrl,
  everyMs: 86_400_000,
  blocked: () => null,
  run: () => {
    process.stdout.write('running\n');
    return new Promise(() => undefined);
  },
  logger: createLogger('fatal', 'fit-process'),
});
