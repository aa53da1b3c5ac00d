import type { Caller } from './http/http.js';
import { waitFor } from './wait.js';

/** A running change rewrites learners, and ends exports. */
export const timeZoneChanged = (caller: Pick<Caller, 'get'>): Promise<unknown> =>
  waitFor('the time zone', async () => {
    const { json } = await caller.get('/api/v1/settings');
    return json.data.time_zone_change?.status === 'done';
  });
