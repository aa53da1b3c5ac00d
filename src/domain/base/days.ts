/** Milliseconds of a day. */
export const dayMs = 86_400_000;

/** UTC month of a time in Unix milliseconds, as 202601. */
export function monthOf(ms: number): number {
  const at = new Date(ms);
  return at.getUTCFullYear() * 100 + at.getUTCMonth() + 1;
}

/** UTC day since 1970 of a time in Unix milliseconds. */
export const dayOf = (ms: number): number => Math.floor(ms / dayMs);

/** Whole days from one time to a later one, both Unix milliseconds. */
export const wholeDays = (from: number, to: number): number => Math.floor((to - from) / dayMs);
