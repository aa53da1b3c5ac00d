import type { Endpoints } from '../embedded/data-dir.js';
import type { Logger } from '../logger.js';
import { auditAndRecord } from '../services/audit/audit.js';
import type { AuditParts } from '../services/audit/checks.js';
import { mismatchKinds } from '../services/audit/report.js';
import type { FigureName, Figures, Sample } from '../services/read/figures.js';
import {
  lastMonthOlderThan,
  planRetention,
  type RetentionParts,
  retainAnswers,
} from '../services/retention/retain-answers.js';
import { type AuditRecord, createAuditStore, loadLastAudit } from '../store/audit/audit-store.js';
import { createRetentionFence } from '../store/audit/retention-fence.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import { createAnswerArchive } from '../warehouse/maintenance/answer-archive.js';
import { createAuditWarehouse } from '../warehouse/maintenance/audit-warehouse.js';
import type { Engine } from './engine.js';

/** A query may read a month of a large table with one thread. */
const questionTimeoutMs = 1_800_000;

export async function withMaintenance<Result>(
  { redis, partitions }: Pick<Engine, 'redis' | 'partitions'>,
  { clickhouseUrl, clickhouseCluster = null }: Endpoints,
  logger: Logger,
  work: (parts: AuditParts & RetentionParts) => Promise<Result>,
): Promise<Result> {
  const client = connectWarehouse(clickhouseUrl, clickhouseCluster, questionTimeoutMs);
  const parts = {
    store: createAuditStore(redis, partitions),
    warehouse: createAuditWarehouse(client, clickhouseCluster),
    archive: createAnswerArchive(client, clickhouseCluster),
    fence: createRetentionFence(redis, partitions),
    partitions,
    logger,
  };
  try {
    return await work(parts);
  } finally {
    await client.close();
  }
}

export const auditOnce = (engine: Engine, signal: AbortSignal): Promise<unknown> =>
  withMaintenance(engine, engine.endpoints, engine.logger, (parts) =>
    auditAndRecord(parts, { days: null, signal }),
  );

export const retainOnce = (engine: Engine, days: number, signal: AbortSignal): Promise<unknown> =>
  withMaintenance(engine, engine.endpoints, engine.logger, async (parts) => {
    const plan = await planRetention(parts, lastMonthOlderThan(days, Date.now()));
    for (const stored of plan.months)
      parts.logger.info(stored, 'the answers of a month are old enough to be dropped');
    await retainAnswers(parts, plan, signal);
  });

export function addAuditFigures(figures: Figures, { redis }: Pick<Engine, 'redis'>): void {
  const add = (name: FigureName, read: (last: AuditRecord) => Sample[]): void =>
    figures.add(name, async () => {
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
