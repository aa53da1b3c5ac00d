/** Reads of ClickHouse that a caller waits for: few at a time, and none for long. */

/** A caller waits for the answer. */
const timeoutMs = 3000;
/** Half of the client's connections: the drain uses the same. */
const maxReads = 4;

/** @returns null where too many are read already: nobody waits in a line. @throws what the read throws */
export type ReadGuard = <Result>(read: (signal: AbortSignal) => Promise<Result>) => Promise<Result | null>;

/** One for all the reads of a client. */
export function createReadGuard(): ReadGuard {
  let reads = 0;
  return async (read) => {
    if (reads >= maxReads) return null;
    reads++;
    try {
      return await read(AbortSignal.timeout(timeoutMs));
    } finally {
      reads--;
    }
  };
}
