/** Audits of one process: their parts over the engine's connections, one run, and their figures. */
import type { Endpoints } from '../embedded/data-dir.js';
import type { AuditParts } from '../services/audit/checks.js';
import { auditAndRecord } from '../services/audit/record.js';
import { mismatchKinds } from '../services/audit/report.js';
import type { Figures } from '../services/read/figures.js';
import { type AuditRecord, createAuditStore, lastAudit } from '../store/audit/audit-store.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import { createAuditWarehouse } from '../warehouse/maintenance/audit-warehouse.js';
import type { Engine } from './engine.js';

/** Of one question to ClickHouse; a month of a large table takes a while with one thread. */
const questionTimeoutMs = 1_800_000;

/** A connection of its own, because it may wait long for an answer. Close it at the end. */
export function openAudit(
  { redis, partitions }: Pick<Engine, 'redis' | 'partitions'>,
  { clickhouseUrl, clickhouseCluster }: Endpoints,
): AuditParts & { close(): Promise<void> } {
  const clickhouse = connectWarehouse(clickhouseUrl, clickhouseCluster, questionTimeoutMs);
  return {
    store: createAuditStore(redis, partitions),
    warehouse: createAuditWarehouse(clickhouse, clickhouseCluster ?? null),
    close: () => clickhouse.close(),
  };
}

export async function runAudit(engine: Engine, signal: AbortSignal): Promise<void> {
  const parts = openAudit(engine, engine.endpoints);
  try {
    await auditAndRecord({ ...parts, logger: engine.logger }, { days: null, signal });
  } finally {
    await parts.close();
  }
}

/** The last audit, whichever process has made it. */
export function addAuditFigures(figures: Figures, { redis }: Pick<Engine, 'redis'>): void {
  const gauge = (name: string, help: string, value: (last: AuditRecord) => number) =>
    figures.add({
      name,
      help,
      type: 'gauge',
      read: async () => {
        const last = await lastAudit(redis);
        return last === null ? [] : [{ value: value(last) }];
      },
    });
  gauge('audit_last_time_seconds', 'When the last audit ended, Unix time', ({ at }) => at / 1000);
  gauge('audit_duration_seconds', 'How long the last audit took', ({ seconds }) => seconds);
  gauge('audit_not_compared', 'What the last audit could not compare', ({ notCompared }) => notCompared);
  figures.add({
    name: 'audit_mismatches',
    help: 'Mismatches that the last audit found, by kind; anything but 0 wants a look',
    type: 'gauge',
    read: async () => {
      const last = await lastAudit(redis);
      if (last === null) return [];
      return mismatchKinds.map((kind) => ({ value: last.mismatches[kind] ?? 0, labels: { kind } }));
    },
  });
}
