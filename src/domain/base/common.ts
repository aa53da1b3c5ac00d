export const sections = ['math', 'rw'] as const;
export type Section = (typeof sections)[number];

export type PerSection<T> = Readonly<Record<Section, T>>;

export const perSection = <T>(of: (section: Section) => T): PerSection<T> => ({
  math: of('math'),
  rw: of('rw'),
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

export const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));

export const logit = (p: number): number => Math.log(p / (1 - p));

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Decimals in responses: probabilities 4, rates 6, indexes and percentages 1. */
export const round4 = (x: number): number => Math.round(x * 1e4) / 1e4;
export const round6 = (x: number): number => Math.round(x * 1e6) / 1e6;
export const round1 = (x: number): number => Math.round(x * 10) / 10;

export const roundKnown = (value: number | null, round = round4): number | null =>
  value === null ? null : round(value);

export const rounded = <Fields extends object>(fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'number' ? round4(value) : value]),
  ) as Fields;

export const dayMs = 86_400_000;

/** For example 202601. */
export function monthOf(ms: number): number {
  const at = new Date(ms);
  return at.getUTCFullYear() * 100 + at.getUTCMonth() + 1;
}

export const dateText = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** UTC days since 1970. */
export const dayOf = (ms: number): number => Math.floor(ms / dayMs);

export const wholeDays = (from: number, to: number): number => Math.floor((to - from) / dayMs);

export function onceFor<Key extends object, Value extends object>(make: (key: Key) => Value) {
  const known = new WeakMap<Key, Value>();
  return (key: Key): Value => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}
