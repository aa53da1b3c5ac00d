import type { Endpoints } from '../../embedded/data-dir.js';
import type { Logger } from '../../logger.js';
import type { AuditDependencies } from '../../services/audit/audit-checks.js';
import { mismatchKinds } from '../../services/audit/audit-report.js';
import { auditAndRecord } from '../../services/audit/run-audit.js';
import type { MetricName, MetricRegistry, MetricSample } from '../../services/operations/metric-registry.js';
import {
  applyRetention,
  findLastOldMonth,
  planRetention,
  type RetentionDependencies,
} from '../../services/retention/apply-retention.js';
import { type AuditRecord, createAuditStore, loadLastAudit } from '../../store/audit/audit-store.js';
import { createRetentionFence } from '../../store/audit/retention-fence.js';
import { connectWarehouse } from '../../warehouse/clickhouse/client.js';
import { createAnswerArchive } from '../../warehouse/maintenance/answer-archive.js';
import { createAuditWarehouse } from '../../warehouse/maintenance/audit-warehouse.js';
import type { Engine } from '../startup/engine.js';

/** A query may read a month of a large table with one thread. */
const queryTimeoutMs = 1_800_000;

export async function withMaintenance<Result>(
  { redis, partitions }: Pick<Engine, 'redis' | 'partitions'>,
  { clickhouseUrl, clickhouseCluster = null }: Endpoints,
  logger: Logger,
  work: (dependencies: AuditDependencies & RetentionDependencies) => Promise<Result>,
): Promise<Result> {
  const client = connectWarehouse(clickhouseUrl, clickhouseCluster, queryTimeoutMs);
  const dependencies = {
    store: createAuditStore(redis, partitions),
    warehouse: createAuditWarehouse(client, clickhouseCluster),
    archive: createAnswerArchive(client, clickhouseCluster),
    fence: createRetentionFence(redis, partitions),
    partitions,
    logger,
  };
  try {
    return await work(dependencies);
  } finally {
    await client.close();
  }
}

export const runAuditOnce = (engine: Engine, signal: AbortSignal): Promise<unknown> =>
  withMaintenance(engine, engine.endpoints, engine.logger, (dependencies) =>
    auditAndRecord(dependencies, { days: null, signal }),
  );

export const applyRetentionOnce = (engine: Engine, days: number, signal: AbortSignal): Promise<unknown> =>
  withMaintenance(engine, engine.endpoints, engine.logger, async (dependencies) => {
    const plan = await planRetention(dependencies, findLastOldMonth(days, Date.now()));
    for (const stored of plan.months)
      dependencies.logger.info(
        stored,
        'answers of a month exceed ATTEMPT_RETENTION_DAYS and will be deleted',
      );
    await applyRetention(dependencies, plan, signal);
  });

export function addAuditMetrics(metricRegistry: MetricRegistry, { redis }: Pick<Engine, 'redis'>): void {
  const add = (name: MetricName, read: (last: AuditRecord) => MetricSample[]): void =>
    metricRegistry.add(name, async () => {
      const last = await loadLastAudit(redis);
      return last === null ? [] : read(last);
    });
  add('audit_last_time_seconds', ({ at }) => [{ value: at / 1000 }]);
  add('audit_duration_seconds', ({ seconds }) => [{ value: seconds }]);
  add('audit_not_compared', ({ notCompared }) => [{ value: notCompared }]);
  add('audit_mismatches', ({ mismatches }) =>
    mismatchKinds.map((kind) => ({ value: mismatches[kind] ?? 0, labels: { kind } })),
  );
}
