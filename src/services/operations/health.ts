import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Compute } from '../../compute/compute.js';
import { singleFlight } from '../../concurrency.js';
import { withTimeout } from '../../lifecycle.js';
import { idWindowSeconds, minIdWindowSeconds } from '../../store/learners/event-ids.js';
import type { Journal, JournalFacts } from '../../store/outbox/journal.js';
import type { Outbox, PipelineFacts } from '../../store/outbox/outbox.js';
import { isRedisAvailable, type RedisClient } from '../../store/redis/connection/client.js';
import { version } from '../../version.js';
import { respondsToPing } from '../../warehouse/clickhouse/client.js';

export interface HealthDependencies {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  readonly outbox: Pick<Outbox, 'facts'>;
  readonly journal: Pick<Journal, 'facts'>;
  readonly compute: Pick<Compute, 'threads' | 'countQueued'>;
  /** Why answers are rejected although Redis responds. */
  readonly blockReason: () => string | null;
  readonly stallReason: () => string | null;
  readonly isDraining: () => boolean;
}

export type Health = ReturnType<typeof createHealth>;

export function createHealth(dependencies: HealthDependencies) {
  const { outbox, journal, compute, blockReason, stallReason, isDraining } = dependencies;
  const probes = createServerProbes(dependencies);
  // Concurrent calls share one result: a call needs no key and costs a dozen server requests.
  return {
    health: singleFlight(async () => {
      const [redis, clickhouse, pipeline, facts] = await Promise.all([
        probes.redis(),
        probes.clickhouse(),
        outbox.facts().catch(() => null),
        journal.facts().catch(() => null),
      ]);
      const down = redis ?? blockReason();
      const delayed = stallReason() ?? describeParkingLimit(pipeline, facts);
      return {
        status: down !== null ? 'down' : clickhouse !== null || delayed !== null ? 'degraded' : 'ok',
        version,
        uptime_seconds: Math.floor(process.uptime()),
        idempotency_window_seconds: idWindowSeconds,
        idempotency_min_window_seconds: minIdWindowSeconds,
        checks: {
          redis: describeCheck(down),
          clickhouse: describeCheck(clickhouse),
          workers: { status: 'ok', threads: compute.threads(), waiting: compute.countQueued() },
          pipeline: {
            ...describeCheck(delayed),
            outbox_length: pipeline?.outboxLength ?? null,
            erasures_due: pipeline?.erasuresDue ?? null,
            oldest_pending_seconds: pipeline?.oldestPendingSeconds ?? null,
            journal_length: facts?.journalLength ?? null,
            parked: pipeline === null || facts === null ? null : pipeline.parked + facts.parked,
          },
        },
      };
    }),
    livez: () => {
      const reason = stallReason();
      return { status: reason === null ? 'ok' : 'failing', reasons: reason === null ? [] : [reason] };
    },
    readyz: singleFlight(async () => {
      const [redis, clickhouse] = await Promise.all([probes.redis(), probes.clickhouse()]);
      const blockers = [isDraining() ? 'shutting down' : null, redis ?? blockReason()].filter(
        (one) => one !== null,
      );
      const warnings = clickhouse === null ? [] : [`warning: ${clickhouse}`];
      return { status: blockers.length === 0 ? 'ready' : 'not ready', reasons: [...blockers, ...warnings] };
    }),
  };
}

const describeCheck = (problem: string | null): object =>
  problem === null ? { status: 'ok' } : { status: 'failing', reason: problem };

const describeParkingLimit = (pipeline: PipelineFacts | null, journal: JournalFacts | null): string | null =>
  (pipeline?.fullyParked ?? 0) + (journal?.fullyParked ?? 0) > 0
    ? 'the limit of parked rows is reached; rejected rows and all later rows wait in the outbox or the journal; run npm run parked -- list'
    : null;

/** Probes resolve with null or the problem, and never reject. */
export const createServerProbes = ({
  redis,
  clickhouse,
}: Pick<HealthDependencies, 'redis' | 'clickhouse'>) => ({
  redis: () => probeServer(isRedisAvailable(redis), 'Redis does not respond'),
  clickhouse: () => probeServer(respondsToPing(clickhouse), 'ClickHouse does not respond'),
});

const probeTimeoutMs = 1500;

/**
 * If this process was blocked, a response may wait unread. So the sockets get one event-loop turn before the
 * server counts as down.
 */
async function probeServer(alive: Promise<boolean>, message: string): Promise<string | null> {
  const reply = alive.catch(() => false);
  const answered = await withTimeout(reply, probeTimeoutMs).catch(() =>
    Promise.race([reply, nextTurn(false)]),
  );
  return answered ? null : message;
}
