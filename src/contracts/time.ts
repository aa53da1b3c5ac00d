import { IsDateTime } from 'typebox/format';

/** How far an answer's clock may run ahead of ours. */
const futureToleranceMs = 5 * 60_000;

/**
 * Unix milliseconds of an RFC 3339 time, or null if it is none.
 * A leap second counts as the second before; digits beyond milliseconds are cut.
 */
export function parseTime(text: string): number | null {
  if (!strictShape.test(text) || !IsDateTime(text)) return null;
  const ms = Date.parse(
    text
      .toUpperCase()
      .replace(/:60(?=[.Z+-])/, ':59')
      .replace(/(\.\d{3})\d+/, '$1'),
  );
  return Number.isNaN(ms) ? null : ms;
}

/** RFC 3339 alone: the format check also takes forms that only its successor allows. */
const strictShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** What is wrong with the time of an answer, or null: it lies in 1970 or later, and not in the future. */
export function occurredAtProblem(ms: number | null, now: number): string | null {
  if (ms === null) return 'must be an RFC 3339 time such as 2026-05-31T12:00:00Z';
  if (ms < 0) return 'must not be before 1970';
  if (ms > now + futureToleranceMs) return 'must be at most 5 minutes in the future';
  return null;
}
