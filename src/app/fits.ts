/** Fits of one process: their parts over the engine's connections, and the scheduled runs. */
import { createFitPool } from '../compute/fit-pool.js';
import type { Endpoints } from '../embedded/data-dir.js';
import type { WatchedConsumer } from '../jobs/consumer.js';
import { schedules, startScheduledRuns } from '../jobs/scheduled-runs.js';
import type { Closers } from '../lifecycle.js';
import { type FitParts, runFits } from '../services/models/fit-models.js';
import { createModelPublisher } from '../store/models/model-store.js';
import type { Logger } from '../telemetry.js';
import { createAnswerHistory } from '../warehouse/reads/answer-history.js';
import { createModelHistory } from '../warehouse/schema/models.js';
import type { Engine } from './engine.js';

const hourMs = 3_600_000;

export interface FitThreadOptions {
  readonly threads?: number | undefined;
  /** Whether this process answers requests. */
  readonly beside: boolean;
}

export const fitParts = (
  { redis, clickhouse }: Pick<Engine, 'redis' | 'clickhouse'>,
  { redisUrl, clickhouseUrl }: Endpoints,
  options: FitThreadOptions,
  logger: Logger,
): FitParts => ({
  answers: createAnswerHistory(clickhouse),
  models: createModelPublisher(redis),
  history: createModelHistory(clickhouse),
  openThreads: () => createFitPool({ ...options, redisUrl, clickhouseUrl }),
  logger,
});

/** @param intervalHours 0: no fits but by command */
export function scheduleFits(
  intervalHours: number,
  engine: Engine,
  endpoints: Endpoints,
  logger: Logger,
  closers: Closers,
): WatchedConsumer {
  const parts = fitParts(engine, endpoints, { beside: true }, logger);
  const run = async (signal: AbortSignal): Promise<void> => {
    await runFits(parts, { signal });
  };
  const everyMs = Math.round(intervalHours * hourMs);
  // Of a Redis that came back empty versions would begin anew, beside those in ClickHouse.
  const { blocked } = engine;
  const fits = startScheduledRuns(schedules.fit, {
    redisUrl: endpoints.redisUrl,
    everyMs,
    blocked,
    run,
    logger,
  });
  closers.add('scheduled fits', () => fits.close());
  return fits;
}
