/** Frequent pairs: skills with previous skills, items with previous items. */
import { sharedArrays } from '../../base/answer-log.js';
import { emptyRelatedTerms, findKeyIndex, type RelatedTerms } from '../../prediction/related-terms.js';

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

interface CountedPair {
  readonly owner: number;
  readonly key: number;
  readonly answers: number;
}

/** `order` and `starts` come from `groupByMember`. */
export function buildFrequentPairs(
  rows: Float32Array,
  rowWidth: number,
  { order, starts }: { readonly order: Uint32Array; readonly starts: Uint32Array },
  columns: readonly number[],
  width: number,
  limits: PairLimits,
): PairTable {
  const owners = starts.length - 1;
  const selected: CountedPair[] = [];
  for (let owner = 0; owner < owners; owner++) {
    const counts = new Map<number, number>();
    for (const index of order.subarray(starts[owner], starts[owner + 1]))
      for (const key of collectKeys(rows, index * rowWidth, columns))
        counts.set(key, 1 + (counts.get(key) ?? 0));
    const frequent: CountedPair[] = [];
    for (const [key, answers] of counts)
      if (answers >= limits.answers) frequent.push({ owner, key, answers });
    selected.push(...selectMostAnswered(frequent, limits.each));
  }
  return buildTable(selectMostAnswered(selected, limits.all), owners, width);
}

/** A set, because the course's skill may also be a previous skill. */
function collectKeys(rows: Float32Array, row: number, columns: readonly number[]): Set<number> {
  const keys = new Set<number>();
  for (const column of columns) if (rows[row + column] !== 0) keys.add(rows[row + column] as number);
  return keys;
}

const selectMostAnswered = (pairs: CountedPair[], most: number): CountedPair[] =>
  pairs.length <= most
    ? pairs
    : pairs.sort((a, b) => b.answers - a.answers || a.owner - b.owner || a.key - b.key).slice(0, most);

function buildTable(pairs: CountedPair[], owners: number, width: number): PairTable {
  pairs.sort((a, b) => a.owner - b.owner || a.key - b.key);
  const starts = sharedArrays.counts(owners + 1);
  const keys = sharedArrays.counts(pairs.length);
  for (const [i, { owner, key }] of pairs.entries()) {
    keys[i] = key;
    starts[owner + 1] = i + 1;
  }
  for (let owner = 1; owner <= owners; owner++)
    starts[owner] = Math.max(starts[owner] as number, starts[owner - 1] as number);
  return { starts, keys, terms: sharedArrays.floats(width * pairs.length), width };
}

export const createEmptyTable = (owners: number, width: number): PairTable => buildTable([], owners, width);

export function buildPairTable(related: readonly RelatedTerms[], width: number): PairTable {
  const pairs = related.flatMap(({ keys }, owner) => Array.from(keys, (key) => ({ owner, key, answers: 0 })));
  const table = buildTable(pairs, related.length, width);
  for (const [owner, { terms }] of related.entries())
    table.terms.set(Array.from(terms), (table.starts[owner] as number) * width);
  return table;
}

/** Key index + 1; 0 if absent. */
export function findPairMember({ starts, keys }: PairTable, owner: number, key: number): number {
  const from = starts[owner] as number;
  const end = starts[owner + 1] as number;
  if (key === 0 || from === end) return 0;
  const keyIndex = findKeyIndex(keys.subarray(from, end), key);
  return keyIndex < 0 ? 0 : from + keyIndex + 1;
}

export function readRelatedTerms({ starts, keys, terms, width }: PairTable, owner: number): RelatedTerms {
  const [from, end] = [starts[owner] as number, starts[owner + 1] as number];
  if (from === end) return emptyRelatedTerms;
  return { keys: keys.subarray(from, end), terms: terms.subarray(from * width, end * width) };
}

/** Maps the keys of pairs. Drops pairs with only zero terms, and pairs mapped to key 0. */
export function mapRelatedKeys(
  { keys, terms }: RelatedTerms,
  width: number,
  keyOf: (key: number) => number,
): RelatedTerms {
  const termsByKey = new Map<number, number[]>();
  for (let i = 0; i < keys.length; i++) {
    const figures = Array.from({ length: width }, (_, j) => terms[i * width + j] as number);
    if (figures.some((figure) => figure !== 0)) termsByKey.set(keyOf(keys[i] as number), figures);
  }
  termsByKey.delete(0);
  const sorted = [...termsByKey].sort(([a], [b]) => a - b);
  return { keys: sorted.map(([key]) => key), terms: sorted.flatMap(([, figures]) => figures) };
}
