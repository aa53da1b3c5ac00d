/** Rows that an earlier version of the service left in the outbox: they end before the newer columns. */
import { outboxColumns, rowColumns } from '../contracts/attempt-row.js';
import { fittedColumns, originColumns, placedColumns } from './attempts.js';

const fields = outboxColumns.length + rowColumns.length;
/** What rows lack that were written before migrations 2, 3 and 4: the defaults of those columns. */
const fittedDefaults = '\tdefault\t0\t0\t0\t0\t0\t0\t0\t\\N\t';
const placedDefaults = '\t\t1\t\\N\t\\N';
const originDefaults = '\t0\t0';
const placedFields = fields - originColumns.length;
const fittedFields = placedFields - placedColumns.length;
const firstFields = fittedFields - fittedColumns.length;
/** By the number of fields that a row has. */
const missing: ReadonlyMap<number, Buffer> = new Map([
  [placedFields, Buffer.from(`${originDefaults}\n`)],
  [fittedFields, Buffer.from(`${placedDefaults}${originDefaults}\n`)],
  [firstFields, Buffer.from(`${fittedDefaults}${placedDefaults}${originDefaults}\n`)],
]);

const tab = 0x09;
const lineFeed = 0x0a;

/**
 * Completes the rows that have exactly the fields of an earlier schema and leaves all others as they are, so that
 * a broken row stays an error: the engine's own setting for short rows would also drop fields that are too many.
 *
 * @param chunks whole lines, each ending in a line feed
 * @returns null where no row is of an earlier version
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
    const completion = missing.get(tabs + 1);
    if (completion !== undefined) {
      parts.push(chunk.subarray(kept, at), completion);
      kept = at + 1;
    }
    tabs = 0;
  }
  return parts.length === 0 ? chunk : Buffer.concat([...parts, chunk.subarray(kept)]);
}
