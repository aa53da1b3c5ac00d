/** Brings the database to this version's schema when a process starts. */
import type { Endpoints } from './embedded/data-dir.js';
import { type Closers, StartError } from './lifecycle.js';
import type { Logger } from './telemetry.js';
import { connectWarehouse, ensureDatabase } from './warehouse/client.js';
import { migrate, SchemaError } from './warehouse/migrations.js';

const retryMs = 2000;

/**
 * With ClickHouse away the service starts all the same, for the outbox keeps what comes in; the schema follows as soon as
 * ClickHouse is there, and inserts fail and repeat until then.
 *
 * @throws StartError when the database is that of a newer version of the service, or not one of the cluster
 */
export async function prepareSchema(endpoints: Endpoints, logger: Logger, closers: Closers): Promise<void> {
  if (await attempt(endpoints, logger)) return;
  const timer = setInterval(() => {
    void attempt(endpoints, logger).then((done) => {
      if (done) clearInterval(timer);
    });
  }, retryMs);
  closers.add('schema preparation', () => clearInterval(timer));
}

async function attempt({ clickhouseUrl, clickhouseCluster }: Endpoints, logger: Logger): Promise<boolean> {
  const client = connectWarehouse(clickhouseUrl, clickhouseCluster);
  try {
    await ensureDatabase(clickhouseUrl, clickhouseCluster);
    const applied = await migrate(client, clickhouseCluster);
    if (applied.length > 0) logger.info({ versions: applied }, 'ClickHouse schema migrated');
    return true;
  } catch (error) {
    if (error instanceof SchemaError) throw new StartError(error.message, { cause: error });
    logger.warn({ err: error }, 'the ClickHouse schema cannot be prepared yet');
    return false;
  } finally {
    await client.close();
  }
}
