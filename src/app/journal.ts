/** The journal of one process: its parts over the engine's connections, and the scheduled runs. */

import type { Endpoints } from '../embedded/data-dir.js';
import type { WatchedConsumer } from '../jobs/consumer.js';
import { schedules, startScheduledRuns } from '../jobs/scheduled-runs.js';
import { type Closers, within } from '../lifecycle.js';
import { createJournalDrain } from '../services/pipeline/drain-journal.js';
import { createFactsRecorder } from '../services/rebuild/deployment-facts.js';
import { createKeyStore } from '../store/access/api-keys.js';
import { createJournal } from '../store/outbox/journal.js';
import { readDeployment } from '../store/redis/deployment.js';
import { tellOnce } from '../store/redis/recent.js';
import type { Logger } from '../telemetry.js';
import { createJournalWarehouse } from '../warehouse/ingest/journal-warehouse.js';
import { createFactsHistory } from '../warehouse/reads/deployment.js';
import { journalErasures } from './corrections.js';
import type { Engine } from './engine.js';

/**
 * Of the time that the stop gives, the part for the run at hand and a last one, so that little waits while nobody
 * drains; what they leave stays in Redis.
 */
const drainingShare = 2 / 3;

/** What waits is no older than this and a run; ClickHouse merges a part every so often with ease. */
const everyMs = 2000;
/** Less than what counts as a stall. */
const runMs = 15_000;

export function runJournal(
  endpoints: Endpoints,
  engine: Engine,
  logger: Logger,
  closers: Closers,
): WatchedConsumer {
  const { redisUrl } = endpoints;
  const { redis, clickhouse, partitions } = engine;
  const journal = createJournal(redis, partitions);
  const warehouse = createJournalWarehouse(clickhouse);
  const erasures = journalErasures(endpoints, engine, logger);
  const drain = createJournalDrain({ journal, warehouse, late: erasures.late, logger });
  const recordFacts = factsRecorder(endpoints, engine, logger);
  // What is due anyway comes first: facts that cannot be told hold nothing else up.
  const run = async (signal: AbortSignal): Promise<void> => {
    await drain(signal);
    await erasures.finish(signal);
    await recordFacts();
  };
  const runs = startScheduledRuns(schedules.journal, {
    redisUrl,
    everyMs,
    // One that has more to do than it gets done goes on with the next.
    run: (signal) => run(AbortSignal.any([signal, AbortSignal.timeout(runMs)])),
    logger,
  });
  closers.add('journal', async (limitMs) => {
    const until = performance.now() + drainingShare * limitMs;
    await runs.close();
    await within(run(AbortSignal.abort()), until - performance.now());
  });
  return runs;
}

const unreadableKey = 'an API key in store cannot be read: it is refused, and ClickHouse is not told of it';

/** A Redis that came back empty has nothing to tell. */
function factsRecorder(
  { clickhouseUrl }: Endpoints,
  { redis, clickhouse, blocked }: Engine,
  logger: Logger,
): () => Promise<void> {
  const tell = tellOnce((error) => logger.error({ err: error }, unreadableKey), 1000);
  const store = { deployment: () => readDeployment(redis), keys: createKeyStore(redis, tell).all };
  const record = createFactsRecorder(store, createFactsHistory(clickhouse, clickhouseUrl));
  return async () => {
    if (blocked() === null) await record();
  };
}
