/** Health of one process, put together from its parts. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { singleFlight } from '../concurrency.js';
import { inTime } from '../lifecycle.js';
import { createHealth, type Health } from '../services/read/health.js';
import { idWindowSeconds, minIdWindowSeconds } from '../store/learners/event-ids.js';
import { answersPing } from '../store/redis/client.js';
import { version } from '../version.js';
import { isAlive } from '../warehouse/clickhouse/client.js';
import type { Engine } from './engine.js';

export function healthOf(engine: Engine, stalled: () => string | null, draining: () => boolean): Health {
  const { outbox, journal, compute, blocked } = engine;
  const { livez, ...asking } = createHealth({
    ...serverProbes(engine),
    pipelineFacts: () => outbox.facts().catch(() => null),
    journalFacts: () => journal.facts().catch(() => null),
    workers: () => ({ threads: compute.threads(), waiting: compute.waiting() }),
    ...{ blocked, stalled, draining, version },
    idempotencyWindowSeconds: idWindowSeconds,
    idempotencyMinWindowSeconds: minIdWindowSeconds,
    uptimeSeconds: () => process.uptime(),
  });
  // Anybody may ask, and each answer costs a dozen questions to the servers.
  return { livez, health: singleFlight(asking.health), readyz: singleFlight(asking.readyz) };
}

/** Whether the servers answer: null, or what is wrong. Never rejects. */
export const serverProbes = ({ redis, clickhouse }: Pick<Engine, 'redis' | 'clickhouse'>) => ({
  redis: () => problem(answersPing(redis), 'Redis does not answer'),
  clickhouse: () => problem(isAlive(clickhouse), 'ClickHouse does not answer'),
});

const probeTimeoutMs = 1500;

/**
 * A server that does not answer in time does not answer. Where this process itself stood still, its answer may lie
 * there unread: the sockets get a turn before that is said.
 */
async function problem(alive: Promise<boolean>, message: string): Promise<string | null> {
  const heard = alive.catch(() => false);
  const answered = await inTime(heard, probeTimeoutMs).catch(() => Promise.race([heard, nextTurn(false)]));
  return answered ? null : message;
}
