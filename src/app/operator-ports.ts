import type { Limiter } from '../concurrency.js';
import { shortHash } from '../contracts/access.js';
import type { OperatorPorts } from '../http/operator-routes.js';
import { createKeyStore } from '../store/access/api-keys.js';
import { lastAudit } from '../store/audit/audit-store.js';
import { createParkedRows } from '../store/corrections/parked-rows.js';
import { readDeployment } from '../store/redis/deployment.js';
import { redisVersion } from '../store/redis/server-info.js';
import { warehouseVersions } from '../warehouse/schema/migrations.js';
import { type Engine, whileUsable } from './engine.js';

type Parts = Pick<Engine, 'redis' | 'clickhouse' | 'blocked' | 'logger'>;

/** What the calls for operators, and those on API keys, need. @param limit of reads of ClickHouse, by the caller's tenant */
export const operatorPortsOf = (
  { redis, clickhouse, blocked, logger }: Parts,
  limit: Limiter,
): OperatorPorts => ({
  keys: {
    ...whileUsable(
      blocked,
      createKeyStore(redis, (error) =>
        logger.error({ err: error }, 'an API key in store cannot be read: it is refused, and not listed'),
      ),
    ),
    log: (act, { keyHash, tenant }, by) =>
      logger.info({ key: shortHash(keyHash), tenant, by: shortHash(by.keyHash) }, `an API key was ${act}`),
  },
  parked: createParkedRows(redis),
  lastAudit: () => lastAudit(redis),
  deployment: {
    facts: () => readDeployment(redis),
    redisVersion: () => redisVersion(redis),
    clickhouse: (tenant) => limit(tenant, () => warehouseVersions(clickhouse)),
  },
});
