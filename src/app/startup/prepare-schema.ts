import { describeConnectionError } from '../../connection-problem.js';
import type { Endpoints } from '../../embedded/data-dir.js';
import { type Closers, StartError } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import { connectWarehouse, ensureDatabase } from '../../warehouse/clickhouse/client.js';
import { createSchema } from '../../warehouse/schema/create-schema.js';

const retryMs = 2000;

/**
 * Resolves after the first attempt. If ClickHouse is unavailable, retries in the background.
 * @throws StartError if a retry cannot help
 */
export async function prepareSchema(
  { clickhouseUrl, clickhouseCluster = null }: Endpoints,
  logger: Logger,
  closers: Closers,
): Promise<void> {
  const client = connectWarehouse(clickhouseUrl, clickhouseCluster);
  closers.add('schema connection', () => client.close());
  let timer: NodeJS.Timeout | undefined;
  const prepare = async (): Promise<void> => {
    try {
      await ensureDatabase(clickhouseUrl, clickhouseCluster);
      if (await createSchema(client, clickhouseCluster)) logger.info('ClickHouse schema prepared');
    } catch (error) {
      if (error instanceof StartError) throw error;
      if (closers.closing) return;
      logger.warn(
        { err: error },
        `cannot prepare the ClickHouse schema yet, retrying: ${describeConnectionError(error).text}`,
      );
      timer = setTimeout(prepare, retryMs);
    }
  };
  closers.add('schema preparation', () => clearTimeout(timer));
  await prepare();
}
