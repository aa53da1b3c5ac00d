/**
 * Generated requests to every route: no answer outside of the contract, no 500, no crash, and each confirmed answer
 * counted once. `npm run test:fault -- fuzz --rounds N` sends N of them.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fuzz } from '../support/fuzz/run.js';
import { faultSeed, isLongForm, roundsOf } from '../support/long-form.js';
import { startService } from '../support/service.js';

const service = await startService({ after });
const requests = roundsOf(3_000, 120_000);

test('the whole HTTP surface', async (t) => {
  t.diagnostic(`${requests} requests, seed ${faultSeed}`);
  // fast-check takes seeds of 32 bits with a sign.
  const { statuses } = await fuzz(t, service, requests, faultSeed | 0);
  t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`);
  assert.ok((statuses.get(200) ?? 0) > requests / 10, 'many requests fit');
  const reached = isLongForm ? [207, 400, 401, 403, 404, 405, 412, 413, 415, 422, 429] : [400, 401, 403, 404];
  for (const status of reached) assert.ok(statuses.has(status), `${status} is reached`);
});
