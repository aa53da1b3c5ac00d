/** Entry of one API process of several; see api-processes.ts. */
import { once } from 'node:events';
import { type ApiProcessSettings, readyMessage } from './api-processes.js';
import { startApiProcess } from './app.js';
import { runProcess } from './lifecycle.js';
import { createLogger } from './telemetry.js';

const [{ number, config, endpoints }] = (await once(process, 'message')) as [ApiProcessSettings];
const logger = createLogger(config.logLevel, 'api');

await runProcess(logger, async (closers) => {
  // The channel closes when the process that started this one is gone, however it ended.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  await startApiProcess({ number, config, endpoints }, logger, closers);
  process.send?.(readyMessage);
});
