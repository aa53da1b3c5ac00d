/** Frequent pairs: skills with previous skills, items with previous items. */
import { shared } from '../../base/answer-log.js';
import { findKey, type Related, unrelated } from '../../prediction/related.js';

/** Shared memory. Owner o has the ascending keys `starts[o]` to `starts[o + 1] - 1`. */
export interface PairTable {
  readonly starts: Uint32Array;
  readonly keys: Uint32Array;
  readonly terms: Float32Array;
  readonly width: number;
}

export interface PairLimits {
  readonly answers: number;
  /** Maximum pairs per owner and in total. */
  readonly each: number;
  readonly all: number;
}

interface Counted {
  readonly owner: number;
  readonly key: number;
  readonly answers: number;
}

/** `order` and `starts` come from `groupByMember`. */
export function newPairTable(
  rows: Float32Array,
  rowWidth: number,
  { order, starts }: { readonly order: Uint32Array; readonly starts: Uint32Array },
  columns: readonly number[],
  width: number,
  limits: PairLimits,
): PairTable {
  const owners = starts.length - 1;
  const kept: Counted[] = [];
  for (let owner = 0; owner < owners; owner++) {
    const counts = new Map<number, number>();
    for (const place of order.subarray(starts[owner], starts[owner + 1]))
      for (const key of keysOf(rows, place * rowWidth, columns)) counts.set(key, 1 + (counts.get(key) ?? 0));
    const own: Counted[] = [];
    for (const [key, answers] of counts) if (answers >= limits.answers) own.push({ owner, key, answers });
    kept.push(...mostAnswered(own, limits.each));
  }
  return tableOf(mostAnswered(kept, limits.all), owners, width);
}

/** A set, because the course's skill may also be a previous skill. */
function keysOf(rows: Float32Array, row: number, columns: readonly number[]): Set<number> {
  const keys = new Set<number>();
  for (const column of columns) if (rows[row + column] !== 0) keys.add(rows[row + column] as number);
  return keys;
}

const mostAnswered = (pairs: Counted[], most: number): Counted[] =>
  pairs.length <= most
    ? pairs
    : pairs.sort((a, b) => b.answers - a.answers || a.owner - b.owner || a.key - b.key).slice(0, most);

function tableOf(pairs: Counted[], owners: number, width: number): PairTable {
  pairs.sort((a, b) => a.owner - b.owner || a.key - b.key);
  const starts = shared.counts(owners + 1);
  const keys = shared.counts(pairs.length);
  for (const [i, { owner, key }] of pairs.entries()) {
    keys[i] = key;
    starts[owner + 1] = i + 1;
  }
  for (let owner = 1; owner <= owners; owner++)
    starts[owner] = Math.max(starts[owner] as number, starts[owner - 1] as number);
  return { starts, keys, terms: shared.floats(width * pairs.length), width };
}

export const noPairs = (owners: number, width: number): PairTable => tableOf([], owners, width);

export function pairTableOf(related: readonly Related[], width: number): PairTable {
  const pairs = related.flatMap(({ keys }, owner) => Array.from(keys, (key) => ({ owner, key, answers: 0 })));
  const table = tableOf(pairs, related.length, width);
  for (const [owner, { terms }] of related.entries())
    table.terms.set(Array.from(terms), (table.starts[owner] as number) * width);
  return table;
}

/** Key index + 1; 0 if absent. */
export function pairMember({ starts, keys }: PairTable, owner: number, key: number): number {
  const from = starts[owner] as number;
  const end = starts[owner + 1] as number;
  if (key === 0 || from === end) return 0;
  const place = findKey(keys.subarray(from, end), key);
  return place < 0 ? 0 : from + place + 1;
}

export function relatedAt({ starts, keys, terms, width }: PairTable, owner: number): Related {
  const [from, end] = [starts[owner] as number, starts[owner + 1] as number];
  if (from === end) return unrelated;
  return { keys: keys.subarray(from, end), terms: terms.subarray(from * width, end * width) };
}

/** Maps the keys of pairs; a pair with key 0 is dropped. */
export function relatedByKeys(
  { keys, terms }: Related,
  width: number,
  keyOf: (key: number) => number,
): Related {
  const own = new Map<number, number[]>();
  for (let i = 0; i < keys.length; i++) {
    const figures = Array.from({ length: width }, (_, j) => terms[i * width + j] as number);
    if (figures.some((figure) => figure !== 0)) own.set(keyOf(keys[i] as number), figures);
  }
  own.delete(0);
  const sorted = [...own].sort(([a], [b]) => a - b);
  return { keys: sorted.map(([key]) => key), terms: sorted.flatMap(([, figures]) => figures) };
}
