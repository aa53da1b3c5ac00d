/** Audits and retention, over a ClickHouse connection of their own: they may wait long for an answer. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { Endpoints } from '../embedded/data-dir.js';
import type { AuditParts } from '../services/audit/checks.js';
import { auditAndRecord } from '../services/audit/record.js';
import { mismatchKinds } from '../services/audit/report.js';
import type { Figures } from '../services/read/figures.js';
import {
  createSnapshotWriter,
  lastMonthOlderThan,
  planRetention,
  type RetentionParts,
  retainAnswers,
} from '../services/retention/retain-answers.js';
import { type AuditRecord, createAuditStore, lastAudit } from '../store/audit/audit-store.js';
import { createRetentionFence } from '../store/audit/retention-fence.js';
import type { Logger } from '../telemetry.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import type { Cluster } from '../warehouse/clickhouse/cluster.js';
import { createAuditWarehouse } from '../warehouse/maintenance/audit-warehouse.js';
import { createAnswerArchive, createForecastArchive } from '../warehouse/maintenance/retention.js';
import { createLearnerSnapshots } from '../warehouse/reads/learner-snapshots.js';
import type { Engine } from './engine.js';

/** Of one question to ClickHouse: a month of a large table takes a while with one thread. */
const questionTimeoutMs = 1_800_000;

type State = Pick<Engine, 'redis' | 'partitions'>;

async function withOwnConnection<Result>(
  { clickhouseUrl, clickhouseCluster = null }: Endpoints,
  work: (client: ClickHouseClient, cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const client = connectWarehouse(clickhouseUrl, clickhouseCluster, questionTimeoutMs);
  try {
    return await work(client, clickhouseCluster);
  } finally {
    await client.close();
  }
}

export const withAudit = <Result>(
  { redis, partitions }: State,
  endpoints: Endpoints,
  work: (parts: AuditParts) => Promise<Result>,
): Promise<Result> =>
  withOwnConnection(endpoints, (client, cluster) =>
    work({ store: createAuditStore(redis, partitions), warehouse: createAuditWarehouse(client, cluster) }),
  );

export const withRetention = <Result>(
  { redis, partitions }: State,
  endpoints: Endpoints,
  logger: Logger,
  work: (parts: RetentionParts) => Promise<Result>,
): Promise<Result> =>
  withOwnConnection(endpoints, (client, cluster) =>
    work({
      archive: createAnswerArchive(client, cluster),
      snapshots: createSnapshotWriter(createLearnerSnapshots(client)),
      fence: createRetentionFence(redis, partitions),
      forecasts: createForecastArchive(client, cluster),
      logger,
    }),
  );

export const auditOnce = (engine: Engine, signal: AbortSignal): Promise<unknown> =>
  withAudit(engine, engine.endpoints, (parts) =>
    auditAndRecord({ ...parts, logger: engine.logger }, { days: null, signal }),
  );

/** @param days age of answers in days from which their months are dropped */
export const retainOnce = (engine: Engine, days: number, signal: AbortSignal): Promise<unknown> =>
  withRetention(engine, engine.endpoints, engine.logger, async (parts) => {
    const plan = await planRetention(parts, lastMonthOlderThan(days, Date.now()));
    for (const stored of plan.months)
      parts.logger.info(stored, 'the answers of a month are old enough to be dropped');
    await retainAnswers(parts, plan, signal);
  });

/** Of the last audit, whichever process has made it. */
export function addAuditFigures(figures: Figures, { redis }: Pick<Engine, 'redis'>): void {
  const gauge = (
    name: string,
    help: string,
    values: (last: AuditRecord) => { value: number; labels?: { kind: string } }[],
  ): void => {
    const read = async () => {
      const last = await lastAudit(redis);
      return last === null ? [] : values(last);
    };
    figures.add({ name, help, type: 'gauge', read });
  };
  gauge('audit_last_time_seconds', 'When the last audit ended, Unix time', ({ at }) => [
    { value: at / 1000 },
  ]);
  gauge('audit_duration_seconds', 'How long the last audit took', ({ seconds }) => [{ value: seconds }]);
  gauge('audit_not_compared', 'What the last audit could not compare', ({ notCompared }) => [
    { value: notCompared },
  ]);
  gauge(
    'audit_mismatches',
    'Mismatches that the last audit found, by kind; anything but 0 wants a look',
    ({ mismatches }) => mismatchKinds.map((kind) => ({ value: mismatches[kind] ?? 0, labels: { kind } })),
  );
}
