import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Endpoints } from '../../embedded/data-dir.js';
import type { Logger } from '../../logger.js';
import type { AuditDependencies } from '../../services/audit/audit-checks.js';
import { mismatchKinds } from '../../services/audit/audit-report.js';
import { type AuditPorts, auditAndRecord } from '../../services/audit/run-audit.js';
import type { MetricName, MetricRegistry, MetricSample } from '../../services/operations/metric-registry.js';
import {
  applyRetention,
  findLastOldMonth,
  planRetention,
  type RetentionDependencies,
} from '../../services/retention/apply-retention.js';
import { type AuditRecord, createAuditStore, loadLastAudit } from '../../store/audit/audit-store.js';
import { createRetentionFence } from '../../store/audit/retention-fence.js';
import { acquireLock, releaseLock } from '../../store/redis/commands/lock.js';
import { mapRedisErrors } from '../../store/redis/connection/client.js';
import { auditLockKey } from '../../store/redis/keys.js';
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

const auditRenewalMs = 2000;

/** @returns the running audit in `done`; null if another audit of the deployment is running */
async function startAudit(engine: Engine, signal: AbortSignal) {
  const { redis, logger } = engine;
  const holder = randomUUID();
  const lock = () => mapRedisErrors(acquireLock(redis, auditLockKey, holder));
  if ((await lock()) > 0) return null;
  const logError = (error: unknown): void =>
    logger.debug({ err: error }, 'renewing the lock of the audit failed; it is retried');
  const renewal = setInterval(() => lock().catch(logError), auditRenewalMs);
  const audit = withMaintenance(engine, engine.endpoints, logger, (dependencies) =>
    auditAndRecord(dependencies, { days: null, signal }),
  );
  const unlock = async (): Promise<void> => {
    clearInterval(renewal);
    await releaseLock(redis, auditLockKey, holder);
  };
  return { done: audit.finally(unlock) };
}

/** Waits while another audit is running, or until the lock of a dead process expires. */
export async function runAuditOnce(engine: Engine, signal: AbortSignal): Promise<unknown> {
  for (;;) {
    const started = await startAudit(engine, signal);
    if (started !== null) return started.done;
    await sleep(auditRenewalMs, undefined, { signal });
  }
}

/** For requests. The audit ends with the service. */
export function createAuditPorts(engine: Engine): AuditPorts {
  const { redis, logger, closers } = engine;
  const stopping = new AbortController();
  let running: Promise<unknown> = Promise.resolve();
  closers.add('audit', () => {
    stopping.abort();
    return running;
  });
  return {
    last: () => loadLastAudit(redis),
    isRunning: async () => (await mapRedisErrors(redis.exists(auditLockKey))) === 1,
    start: async () => {
      const started = await startAudit(engine, stopping.signal);
      if (started === null) return false;
      running = started.done.catch((error: unknown) => {
        if (!stopping.signal.aborted) logger.error({ err: error }, 'the requested audit failed');
      });
      return true;
    },
  };
}

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
