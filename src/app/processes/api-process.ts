import { once } from 'node:events';
import { runProcess } from '../../lifecycle.js';
import { createLogger } from '../../logger.js';
import { createMetrics } from '../operations/metrics.js';
import { watchForStaleRedis } from '../operations/stale-redis-watch.js';
import { connectStateStore, startEngine } from '../startup/engine.js';
import { startApi } from './api.js';
import { type ApiProcessSettings, linkToParent, readyMessage } from './api-processes.js';

const [{ number, config, endpoints }] = (await once(process, 'message')) as [ApiProcessSettings];
const logger = createLogger(config.logLevel, 'api');

await runProcess(logger, async (closers) => {
  // The IPC channel closes when the parent exits.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  const redis = await connectStateStore(endpoints, config, logger, closers);
  const engine = await startEngine(redis, endpoints, config, logger, closers);
  await watchForStaleRedis(engine);
  const metrics = createMetrics(`api-${number}`);
  await startApi(engine, { config, metricRegistry: metrics, ...linkToParent(metrics.collect) });
  process.send?.(readyMessage);
});
