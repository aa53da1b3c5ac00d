import { type AttemptRow, rowPrefix } from '../../contracts/attempt-row.js';
import { decodeAttemptRow } from '../../contracts/attempt-row-reader.js';
import type { AttemptPlace, WaitingAttempt, WaitingAttempts } from '../../services/read/attempt-ports.js';
import { rowsInStream } from '../learners/learner-entries.js';
import type { RedisClient } from '../redis/client.js';
import { outboxKey, parkedKey, partitionOf } from '../redis/keys.js';

/** Reads a learner's answers in the outbox and among the rows put aside. */
export function createWaitingAttempts(client: RedisClient, partitions: number): WaitingAttempts {
  async function* pages(
    key: string,
    prefix: string,
    place: AttemptPlace,
  ): AsyncGenerator<readonly WaitingAttempt[]> {
    for await (const rows of rowsInStream(client, key, prefix, 0)) {
      yield rows.map((line) => ({ place, line, row: rowOf(line) }));
    }
  }

  return {
    of: async function* (tenant, userId) {
      const source = outboxKey(partitionOf(tenant, userId, partitions));
      const prefix = rowPrefix(tenant, userId);
      yield* pages(source, prefix, 'outbox');
      yield* pages(parkedKey(source), prefix, 'parked');
    },
  };
}

/** Among the rows that were put aside are such as nobody can read. */
function rowOf(line: string): AttemptRow | null {
  try {
    return decodeAttemptRow(line);
  } catch {
    return null;
  }
}
