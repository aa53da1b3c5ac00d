/** Rows that an earlier version of the service left in the outbox: they end before the newer columns. */
import { outboxColumns, rowColumns } from '../contracts/attempt-row.js';
import { fittedColumns } from './attempts.js';

const fields = outboxColumns.length + rowColumns.length;
/** Fields of a row of schema version 1, and what it lacks: the defaults of `fittedColumns`. */
const firstFields = fields - fittedColumns.length;
const missing = Buffer.from('\tdefault\t0\t0\t0\t0\t0\t0\t0\t\\N\t\n');

const tab = 0x09;
const lineFeed = 0x0a;

/**
 * Completes the rows that have exactly the fields of schema version 1 and leaves all others as they are, so that
 * a broken row stays an error: the engine's own setting for short rows would also drop fields that are too many.
 *
 * @param chunks whole lines, each ending in a line feed
 * @returns null where no row is of that version
 */
export function completeOlderRows(chunks: readonly Buffer[]): Buffer[] | null {
  const completed = chunks.map(completeChunk);
  return completed.some((chunk, i) => chunk !== chunks[i]) ? completed : null;
}

/** Returns the chunk itself where there is nothing to complete. */
function completeChunk(chunk: Buffer): Buffer {
  const parts: Buffer[] = [];
  let kept = 0;
  let tabs = 0;
  for (let at = 0; at < chunk.length; at++) {
    const byte = chunk[at];
    if (byte === tab) tabs += 1;
    if (byte !== lineFeed) continue;
    if (tabs === firstFields - 1) {
      parts.push(chunk.subarray(kept, at), missing);
      kept = at + 1;
    }
    tabs = 0;
  }
  return parts.length === 0 ? chunk : Buffer.concat([...parts, chunk.subarray(kept)]);
}
