/** The journal of one process: its parts over the engine's connections, and the scheduled runs. */
import type { Endpoints } from './embedded/data-dir.js';
import type { Engine } from './engine.js';
import { startJournalRuns } from './jobs/journal-queue.js';
import { within } from './jobs/worker.js';
import type { Closers } from './lifecycle.js';
import { createJournalDrain } from './services/drain-journal.js';
import { createJournal } from './store/journal.js';
import type { Logger } from './telemetry.js';
import { createJournalWarehouse } from './warehouse/journal-warehouse.js';

/**
 * Of the time that the stop gives, the part for the run at hand and a last one, so that little waits while nobody
 * drains; what they leave stays in Redis.
 */
const drainingShare = 2 / 3;

export function runJournal(
  { redisUrl }: Endpoints,
  { redis, clickhouse, partitions }: Engine,
  logger: Logger,
  closers: Closers,
): void {
  const journal = createJournal(redis, partitions);
  const drain = createJournalDrain({ journal, warehouse: createJournalWarehouse(clickhouse), logger });
  const runs = startJournalRuns({ redisUrl, run: drain, logger });
  closers.add('journal', async (limitMs) => {
    const until = performance.now() + drainingShare * limitMs;
    await runs.close();
    await within(drain(AbortSignal.abort()), until - performance.now());
  });
}
