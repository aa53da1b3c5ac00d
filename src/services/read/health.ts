/** Whether the service is alive, ready and well. */
import type { JournalFacts } from '../../store/outbox/journal.js';
import type { PipelineFacts } from '../../store/outbox/outbox.js';

export interface HealthPorts {
  /** Null: serving; else what is wrong. Never rejects. */
  readonly redis: () => Promise<string | null>;
  readonly clickhouse: () => Promise<string | null>;
  /** Both null when Redis does not answer. */
  readonly pipelineFacts: () => Promise<PipelineFacts | null>;
  readonly journalFacts: () => Promise<JournalFacts | null>;
  readonly workers: () => { readonly threads: number; readonly waiting: number };
  /** Why answers cannot be taken although Redis serves, for instance that it came back empty; null if they can. */
  readonly blocked: () => string | null;
  /** Why the consumers of this process do not move; null if they do, or if it has none. */
  readonly stalled: () => string | null;
  readonly draining: () => boolean;
  /** How long event ids are remembered, and of a learner with very many at least. */
  readonly idempotencyWindowSeconds: number;
  readonly idempotencyMinWindowSeconds: number;
  readonly uptimeSeconds: () => number;
  readonly version: string;
}

export type Health = ReturnType<typeof createHealth>;

/** @param ports asked at every call: nothing is remembered here */
export const createHealth = (ports: HealthPorts) => ({
  /** Data of GET /api/v1/health. */
  health: async () => {
    const [redis, clickhouse, facts, journal] = await Promise.all([
      ports.redis(),
      ports.clickhouse(),
      ports.pipelineFacts(),
      ports.journalFacts(),
    ]);
    const blocked = redis ?? ports.blocked();
    const delayed = ports.stalled() ?? fullyParked(facts, journal);
    const status = blocked !== null ? 'down' : clickhouse !== null || delayed !== null ? 'degraded' : 'ok';
    return {
      status,
      version: ports.version,
      uptime_seconds: Math.floor(ports.uptimeSeconds()),
      idempotency_window_seconds: ports.idempotencyWindowSeconds,
      idempotency_min_window_seconds: ports.idempotencyMinWindowSeconds,
      checks: {
        redis: check(blocked),
        clickhouse: check(clickhouse),
        workers: { status: 'ok', ...ports.workers() },
        pipeline: {
          ...check(delayed),
          outbox_length: facts?.outboxLength ?? null,
          erasures_due: facts?.erasuresDue ?? null,
          oldest_pending_seconds: facts?.oldestPendingSeconds ?? null,
          journal_length: journal?.journalLength ?? null,
          parked: facts === null || journal === null ? null : facts.parked + journal.parked,
        },
      },
    };
  },
  livez: () => {
    const stalled = ports.stalled();
    return { status: stalled === null ? 'ok' : 'failing', reasons: stalled === null ? [] : [stalled] };
  },
  readyz: async () => {
    const [redis, clickhouse] = await Promise.all([ports.redis(), ports.clickhouse()]);
    const blockers = [ports.draining() ? 'shutting down' : null, redis ?? ports.blocked()].filter(isText);
    const warnings = clickhouse === null ? [] : [`warning: ${clickhouse}`];
    return { status: blockers.length === 0 ? 'ready' : 'not ready', reasons: [...blockers, ...warnings] };
  },
});

const isText = (text: string | null): text is string => text !== null;

const check = (problem: string | null): object =>
  problem === null ? { status: 'ok' } : { status: 'failing', reason: problem };

const fullyParked = (facts: PipelineFacts | null, journal: JournalFacts | null): string | null =>
  (facts?.fullyParked ?? 0) + (journal?.fullyParked ?? 0) > 0
    ? 'no more rows can be parked: what ClickHouse refuses waits, and what is behind it'
    : null;
