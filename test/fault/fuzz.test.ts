/**
 * Generated requests to every route: no answer outside of the contract, no 500, no crash, and each confirmed answer
 * counted once. `npm run test:full -- fuzz --rounds N` sends N of them.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fuzz } from '../support/fuzz/run.js';
import { faultSeed, isLongForm, roundsOf } from '../support/runner/long-form.js';
import { startService } from '../support/servers/service.js';

const service = await startService({ after });
const requests = roundsOf(3_000, 120_000);

test('the whole HTTP surface', async (t) => {
  t.diagnostic(`${requests} requests, seed ${faultSeed}`);
  // fast-check takes seeds of 32 bits with a sign.
  const tell = (table: string): void => {
    process.stdout.write(`answers by route and status:\n${table}\n`);
  };
  const { counts } = await fuzz(t, service, requests, faultSeed | 0, tell);
  assert.ok(counts.of(200) > requests / 10, 'many requests fit');
  if (isLongForm) assert.deepEqual(counts.unreached(), [], 'each route did what it is for');
  const reached = isLongForm ? [207, 400, 401, 403, 404, 405, 412, 413, 415, 422, 429] : [400, 401, 403, 404];
  for (const status of reached) assert.ok(counts.of(status) > 0, `${status} is reached`);
});
