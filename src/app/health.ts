/** Health of one process: what its parts tell, put together. */

import { singleFlight } from '../concurrency.js';
import { createHealth, type Health } from '../services/read/health.js';
import { idWindowSeconds, minIdWindowSeconds } from '../store/learners/id-ledger.js';
import { createJournal } from '../store/outbox/journal.js';
import type { Outbox } from '../store/outbox/outbox.js';
import { answersPing } from '../store/redis/client.js';
import { isAlive } from '../warehouse/clickhouse/client.js';
import type { Engine } from './engine.js';

export interface ProcessHealth {
  readonly engine: Engine;
  readonly outbox: Outbox;
  readonly stalled: () => string | null;
  readonly draining: () => boolean;
  readonly version: string;
}

export function healthOf({ engine, outbox, stalled, draining, version }: ProcessHealth): Health {
  const journal = createJournal(engine.redis, engine.partitions);
  const { livez, ...asking } = createHealth({
    ...serverProbes(engine),
    pipelineFacts: () => outbox.facts().catch(() => null),
    journalFacts: () => journal.facts().catch(() => null),
    workers: () => ({ threads: engine.compute.threads(), waiting: engine.compute.waiting() }),
    blocked: engine.blocked,
    stalled,
    draining,
    idempotencyWindowSeconds: idWindowSeconds,
    idempotencyMinWindowSeconds: minIdWindowSeconds,
    uptimeSeconds: () => process.uptime(),
    version,
  });
  // Anybody may ask, and each answer costs a dozen questions to the servers.
  return { livez, health: singleFlight(asking.health), readyz: singleFlight(asking.readyz) };
}

/** Whether the servers answer: null, or what is wrong. Never rejects. */
export interface ServerProbes {
  readonly redis: () => Promise<string | null>;
  readonly clickhouse: () => Promise<string | null>;
}

export const serverProbes = ({ redis, clickhouse }: Pick<Engine, 'redis' | 'clickhouse'>): ServerProbes => ({
  redis: () => problem(answersPing(redis), 'Redis does not answer'),
  clickhouse: () => problem(isAlive(clickhouse), 'ClickHouse does not answer'),
});

const probeTimeoutMs = 1500;

/**
 * A server that does not answer in time does not answer. Where this process itself stood still, its answer may lie
 * there unread: the sockets get a turn before that is said.
 */
async function problem(alive: Promise<boolean>, message: string): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, false), probeTimeoutMs);
  });
  const answered = await Promise.race([alive.catch(() => false), late]);
  clearTimeout(timer);
  return answered ? null : message;
}
