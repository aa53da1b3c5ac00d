import type { Overrun } from '../start-clickhouse.js';
import { BridgeError } from './errors.js';

/** A dashboard may repeat a statement that stopped the engine. */
const rejectionMs = 10 * 60_000;
/** Overruns per hour that cause no pause. */
const toleratedOverruns = 2;
const overrunWindowMs = 60 * 60_000;
const minPauseMs = 30_000;
const maxPauseMs = 10 * 60_000;

const maxShapeLength = 8192;

/** One pattern: a string may contain the start of a comment, and vice versa. */
const stringOrComment =
  /('(?:[^'\\]|\\[\s\S]|'')*'?|\$(\w*)\$[\s\S]*?\$\2\$)|--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?\*\//g;

function removeValues(statement: string): string {
  return statement
    .slice(0, maxShapeLength)
    .replace(stringOrComment, (_, string?: string) => (string === undefined ? ' ' : "'?'"))
    .replace(/\s+/g, ' ')
    .trim();
}

const computeShape = (statement: string): string =>
  removeValues(statement).toLowerCase().replace(/\d+/g, '?').replaceAll(' ', '');

export const buildOverrun = (statement: string, at: number): Overrun => ({
  shape: computeShape(statement),
  query: removeValues(statement).slice(0, 200),
  at,
});

/** Grows with every overrun, to leave time for inserts and reads. */
function computePauseEnd(overruns: readonly Overrun[], now: number): number {
  const recent = overruns.filter(({ at }) => now - at < overrunWindowMs);
  const last = recent.at(-1);
  if (last === undefined || recent.length <= toleratedOverruns) return 0;
  return last.at + Math.min(maxPauseMs, minPauseMs * 2 ** (recent.length - toleratedOverruns - 1));
}

function rejectUntil(reason: string, untilMs: number, now: number): never {
  const seconds = Math.ceil((untilMs - now) / 1000);
  throw new BridgeError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', `${reason}; try again in ${seconds} s`);
}

/** @throws BridgeError 202 for a repeated statement, or during a pause */
export function checkOverruns(overruns: readonly Overrun[], statement: string, now: number): void {
  const pause = computePauseEnd(overruns, now);
  if (pause > now)
    rejectUntil('Several queries exceeded their time limits and could not be cancelled', pause, now);
  const recent = overruns.filter(({ at }) => now - at < rejectionMs);
  if (recent.length === 0) return;
  const requestedShape = computeShape(statement);
  const same = recent.findLast(({ shape }) => shape === requestedShape);
  if (same !== undefined)
    rejectUntil('This query exceeded its time limit and could not be cancelled', same.at + rejectionMs, now);
}
