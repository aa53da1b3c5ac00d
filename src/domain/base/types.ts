export const sections = ['math', 'rw'] as const;
export type Section = (typeof sections)[number];

/** A value for each section. */
export type PerSection<T> = Readonly<Record<Section, T>>;

export const perSection = <T>(of: (section: Section) => T): PerSection<T> => ({
  math: of('math'),
  rw: of('rw'),
});

/** An answer as the models see it. */
export interface Answer {
  readonly isCorrect: boolean;
  /** Unix milliseconds. */
  readonly occurredAt: number;
  /** Logits, -3 to 3; null: not supplied. */
  readonly questionDifficulty: number | null;
  /** 0 to 86400; null: not reported. */
  readonly timeSpentSeconds: number | null;
  /** 1 to 5; null: not sent. */
  readonly confidenceScore: number | null;
}
