import type { Overrun } from '../clickhouse.js';
import { BridgeError } from './errors.js';

/** A dashboard may repeat a statement that stopped the engine. */
const refusedMs = 10 * 60_000;
/** Overruns per hour that cause no pause. */
const accidents = 2;
const rememberedMs = 60 * 60_000;
const firstPauseMs = 30_000;
const longestPauseMs = 10 * 60_000;

const shapeLength = 8192;

/** One pattern: a string may contain the start of a comment, and vice versa. */
const stringOrComment =
  /('(?:[^'\\]|\\[\s\S]|'')*'?|\$(\w*)\$[\s\S]*?\$\2\$)|--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?\*\//g;

function withoutValues(statement: string): string {
  return statement
    .slice(0, shapeLength)
    .replace(stringOrComment, (_, string?: string) => (string === undefined ? ' ' : "'?'"))
    .replace(/\s+/g, ' ')
    .trim();
}

const shapeOf = (statement: string): string =>
  withoutValues(statement).toLowerCase().replace(/\d+/g, '?').replaceAll(' ', '');

export const overrunOf = (statement: string, at: number): Overrun => ({
  shape: shapeOf(statement),
  query: withoutValues(statement).slice(0, 200),
  at,
});

/** Grows with every overrun, to leave time for inserts and reads. */
function pausedUntil(overruns: readonly Overrun[], now: number): number {
  const recent = overruns.filter(({ at }) => now - at < rememberedMs);
  const last = recent.at(-1);
  if (last === undefined || recent.length <= accidents) return 0;
  return last.at + Math.min(longestPauseMs, firstPauseMs * 2 ** (recent.length - accidents - 1));
}

function refuse(reason: string, untilMs: number, now: number): never {
  const seconds = Math.ceil((untilMs - now) / 1000);
  throw new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', `${reason}; try again in ${seconds} s`);
}

/** @throws BridgeError 202 for a repeated statement, or during a pause */
export function checkOverruns(overruns: readonly Overrun[], statement: string, now: number): void {
  const pause = pausedUntil(overruns, now);
  if (pause > now) refuse('Queries outlived their limits several times, analysts have to wait', pause, now);
  const recent = overruns.filter(({ at }) => now - at < refusedMs);
  if (recent.length === 0) return;
  const asked = shapeOf(statement);
  const same = recent.findLast(({ shape }) => shape === asked);
  if (same !== undefined) refuse('This query outlived its limit', same.at + refusedMs, now);
}
