/** What tells a learner's data as it is stored: ports over Redis and ClickHouse. */
import type { Engine } from './engine.js';
import type { AttemptPorts } from './services/list-attempts.js';
import { createWaitingAttempts } from './store/waiting-attempts.js';
import { createStoredAttempts } from './warehouse/stored-attempts.js';

export function learnerDataPorts({ redis, clickhouse, partitions, learners }: Engine): {
  attempts: AttemptPorts;
} {
  const waiting = createWaitingAttempts(redis, partitions);
  return { attempts: { learners, waiting, stored: createStoredAttempts(clickhouse) } };
}
