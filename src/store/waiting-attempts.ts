import { rowPrefix } from '../contracts/attempt-row.js';
import { decodeAttemptRow } from '../contracts/attempt-row-reader.js';
import type { AttemptPlace, FoundAttempt, WaitingAttempts } from '../services/attempt-ports.js';
import type { RedisClient } from './client.js';
import { outboxKey, parkedKey, partitionOf } from './keys.js';
import { rowsInStream } from './learner-entries.js';

/** Reads a learner's answers in the outbox and among the rows put aside. */
export function createWaitingAttempts(client: RedisClient, partitions: number): WaitingAttempts {
  async function* pages(
    key: string,
    prefix: string,
    place: AttemptPlace,
  ): AsyncGenerator<readonly FoundAttempt[]> {
    for await (const rows of rowsInStream(client, key, prefix, 0)) {
      yield rows.map((line) => ({ place, row: decodeAttemptRow(line) }));
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
