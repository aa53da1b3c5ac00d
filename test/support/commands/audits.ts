/** Audits of a running service, with short pauses between their looks. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { AuditReport, Mismatch } from '../../../src/services/audit/audit-report.js';
import { type AuditOptions, runAudit } from '../../../src/services/audit/run-audit.js';
import { createAuditStore } from '../../../src/store/audit/audit-store.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import type { ClusterName } from '../../../src/warehouse/clickhouse/ddl.js';
import { createAuditWarehouse } from '../../../src/warehouse/maintenance/audit-warehouse.js';

/** @returns one more audit at each call */
export function auditsOf(
  redis: RedisClient,
  clickhouse: ClickHouseClient,
  cluster: ClusterName = null,
): (change?: Partial<AuditOptions>) => Promise<AuditReport> {
  const parts = {
    store: createAuditStore(redis, defaultPartitions),
    warehouse: createAuditWarehouse(clickhouse, cluster),
  };
  const { signal } = new AbortController();
  return (change) => runAudit(parts, { days: null, signal, maxWaitMs: 60_000, pauseMs: 20, ...change });
}

/** Short, without days: `tenant kind place expected found`, in order. */
export const namesOf = (mismatches: readonly Mismatch[]): string[] =>
  mismatches
    .map((one) => `${one.tenant} ${one.kind} ${one.place ?? 'attempts'} ${one.expected} ${one.found}`)
    .sort();
