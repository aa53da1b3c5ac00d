export const sections = ['math', 'rw'] as const;
export type Section = (typeof sections)[number];

export type PerSection<T> = Readonly<Record<Section, T>>;

export const mapSections = <T>(compute: (section: Section) => T): PerSection<T> => ({
  math: compute('math'),
  rw: compute('rw'),
});

export interface Answer {
  readonly isCorrect: boolean;
  /** Unix milliseconds. */
  readonly occurredAt: number;
  /** Logits; null if not supplied. */
  readonly questionDifficulty: number | null;
  readonly timeSpentSeconds: number | null;
  /** 1 to 5; null if not sent. */
  readonly confidenceScore: number | null;
}

export type NonEmpty<T> = readonly [T, ...T[]];

/** Most lists here have one value, for which it is ten times faster than `map`. */
export const mapNonEmpty = <T, Result>(
  list: NonEmpty<T>,
  map: (value: T, index: number) => Result,
): NonEmpty<Result> =>
  list.length === 1 ? [map(list[0], 0)] : (list.map(map) as unknown as NonEmpty<Result>);

/** Mean of a figure. */
export function average<T>(list: readonly T[], figure: (value: T) => number): number {
  let sum = 0;
  for (let i = 0; i < list.length; i++) sum += figure(list[i] as T);
  return sum / list.length;
}

export const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));

export const logit = (p: number): number => Math.log(p / (1 - p));

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Decimals in responses: probabilities 4, rates 6, indexes and percentages 1. */
export const round4 = (x: number): number => Math.round(x * 1e4) / 1e4;
export const round6 = (x: number): number => Math.round(x * 1e6) / 1e6;
export const round1 = (x: number): number => Math.round(x * 10) / 10;

export const roundOrNull = (value: number | null, round = round4): number | null =>
  value === null ? null : round(value);

export const roundFields = <Fields extends object>(fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'number' ? round4(value) : value]),
  ) as Fields;

export const dayMs = 86_400_000;

/** For example 202601. */
export function toMonth(ms: number): number {
  const at = new Date(ms);
  return at.getUTCFullYear() * 100 + at.getUTCMonth() + 1;
}

export const formatDate = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** UTC days since 1970. */
export const toUtcDay = (ms: number): number => Math.floor(ms / dayMs);

export const countDays = (from: number, to: number): number => Math.floor((to - from) / dayMs);

export function memoizeByObject<Key extends object, Value extends object>(compute: (key: Key) => Value) {
  const cache = new WeakMap<Key, Value>();
  return (key: Key): Value => {
    const found = cache.get(key);
    if (found !== undefined) return found;
    const computed = compute(key);
    cache.set(key, computed);
    return computed;
  };
}
