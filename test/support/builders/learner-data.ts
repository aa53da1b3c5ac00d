/** Calls that read a learner's rows from ClickHouse. On a busy machine they may get 503 and must be retried. */
import type { Answer, Caller, JsonAnswer } from '../http/http.js';
import { askUntil } from '../wait.js';

/** Retries while the response is 503. */
export const askInTurn = <Response extends Pick<Answer, 'status'>>(
  request: () => Promise<Response>,
): Promise<Response> => askUntil('a response other than 503', request, ({ status }) => status !== 503);

export function takeBack(caller: Caller, userId: string, eventId: string): Promise<JsonAnswer> {
  const path = `/api/v1/learners/${encodeURIComponent(userId)}/attempts/${encodeURIComponent(eventId)}`;
  return askInTurn(() => caller.call({ method: 'DELETE', path }));
}

/** Waits until an erasure is done. @returns its receipt */
export const erasureDone = (caller: Caller, statusUrl: string): Promise<JsonAnswer> =>
  askUntil(
    'the erasure',
    () => caller.get(statusUrl),
    ({ json }) => json.data?.status === 'done',
  );
