import { type AttemptRow, rowPrefix } from '../../contracts/attempt-row.js';
import { decodeAttemptRow } from '../../contracts/attempt-row-reader.js';
import { rowsInStream } from '../learners/learner-entries.js';
import type { RedisClient } from '../redis/client.js';
import { outboxKey, parkedKey, partitionOf } from '../redis/keys.js';

export type WaitingAttempts = ReturnType<typeof createWaitingAttempts>;

/** A row in Redis; `row` is null where this version of the service cannot read the line. */
export interface WaitingAttempt {
  readonly place: 'outbox' | 'parked';
  readonly line: string;
  readonly row: AttemptRow | null;
}

/** Reads a learner's answers in the outbox and among the parked rows. */
export function createWaitingAttempts(client: RedisClient, partitions: number) {
  async function* pages(
    key: string,
    prefix: string,
    place: WaitingAttempt['place'],
  ): AsyncGenerator<readonly WaitingAttempt[]> {
    for await (const rows of rowsInStream(client, key, prefix, 0)) {
      yield rows.map((line) => ({ place, line, row: rowOf(line) }));
    }
  }

  return {
    /**
     * The learner's, a page at a time, each newest first: those in the outbox, then those parked. Of several with one
     * number, which a correction leaves for a while, the first is the one that counts, and it goes before a stored one.
     * Who asks ClickHouse when this has ended misses none: an answer leaves Redis only after it is there.
     * @throws ApiError UNAVAILABLE
     */
    of: async function* (tenant: string, userId: string) {
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
