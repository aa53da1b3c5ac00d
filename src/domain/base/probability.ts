/** Small numeric helpers shared by the models. */

export const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));

export const logit = (p: number): number => Math.log(p / (1 - p));

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

const round = (x: number, unit: number): number => Math.round(x * unit) / unit;

/** Probabilities in answers have 4 decimals. */
export const round4 = (x: number): number => round(x, 1e4);

/** Rates in answers have 6 decimals. */
export const round6 = (x: number): number => round(x, 1e6);

/** Indexes and percents in answers have 1 decimal. */
export const round1 = (x: number): number => round(x, 10);
