/**
 * What is asked of a learner's data, on a machine that may be busy: only so many may read ClickHouse for callers at
 * once, and each for so long, then it is 503 and nothing was done.
 */
import type { Answer, Caller, JsonAnswer } from '../http/http.js';
import { askUntil } from '../wait.js';

/** Asks as often as it takes to get a turn. */
export const askInTurn = <Told extends Pick<Answer, 'status'>>(ask: () => Promise<Told>): Promise<Told> =>
  askUntil('a turn', ask, ({ status }) => status !== 503);

export function takeBack(caller: Caller, userId: string, eventId: string): Promise<JsonAnswer> {
  const path = `/api/v1/learners/${encodeURIComponent(userId)}/attempts/${encodeURIComponent(eventId)}`;
  return askInTurn(() => caller.call({ method: 'DELETE', path }));
}

/** @returns the receipt of an erasure, once it is done */
export const erasureDone = (caller: Caller, statusUrl: string): Promise<JsonAnswer> =>
  askUntil(
    'the erasure',
    () => caller.get(statusUrl),
    ({ json }) => json.data?.status === 'done',
  );
