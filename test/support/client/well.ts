import type { Caller, JsonAnswer } from '../http/http.js';
import { askUntil } from '../wait.js';

/** Health or readiness once all are well: a server that is slow to answer for a moment is told at once. */
export const whenWell = (caller: Caller, path = '/api/v1/health'): Promise<JsonAnswer> =>
  askUntil(
    path,
    () => caller.get(path),
    ({ json }) => json.data?.status === 'ok' || json.reasons?.length === 0,
  );
