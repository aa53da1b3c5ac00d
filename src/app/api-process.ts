/** Entry of one API process of several; see api-processes.ts. */
import { once } from 'node:events';
import { type Closers, runProcess } from '../lifecycle.js';
import { createOutbox } from '../store/outbox/outbox.js';
import { createLogger, type Logger } from '../telemetry.js';
import { version } from '../version.js';
import { startApi } from './api.js';
import { linkToParent } from './api-channel.js';
import { type ApiProcessSettings, readyMessage } from './api-processes.js';
import { connectState, startEngine } from './engine.js';
import { createMetrics, metricsText } from './metrics.js';
import { watchForOlderRedis } from './older-redis.js';

const [settings] = (await once(process, 'message')) as [ApiProcessSettings];
const logger = createLogger(settings.config.logLevel, 'api');

await runProcess(logger, async (closers) => {
  // The channel closes when the process that started this one is gone, however it ended.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  await startApiProcess(settings, logger, closers);
  process.send?.(readyMessage);
});

/** One process of several on a port: it takes answers, the process that started it does the rest. */
async function startApiProcess(
  { number, config, endpoints }: ApiProcessSettings,
  logger: Logger,
  closers: Closers,
): Promise<void> {
  const redis = await connectState(endpoints, config, logger, closers);
  const engine = await startEngine(redis, endpoints, config, logger, closers);
  const askOfAge = await watchForOlderRedis(engine, logger, closers);
  askOfAge();
  const metrics = createMetrics(`api-${number}`);
  const parent = linkToParent(metrics.collect);
  const options = {
    config,
    engine,
    outbox: createOutbox(engine.redis, engine.partitions),
    sharePort: true,
    probesOnly: false,
    stalled: parent.stalled,
    figures: metrics,
    metrics: async () => metricsText((await parent.collectAll()) ?? [await metrics.collect()]),
    version,
  };
  await startApi(options, logger, closers);
}
