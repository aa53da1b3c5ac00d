import type { Caller, JsonAnswer } from '../http/http.js';
import { askUntil } from '../wait.js';

/** Health or readiness without a warning: the first check can fail because a server responds slowly. */
export const waitUntilHealthy = (caller: Caller, path = '/api/v1/health'): Promise<JsonAnswer> =>
  askUntil(
    path,
    () => caller.get(path),
    ({ json }) => json.data?.status === 'ok' || json.reasons?.length === 0,
  );
