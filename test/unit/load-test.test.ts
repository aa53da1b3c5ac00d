/** Objectives, capacity search and key checks of `npm run bench -- --url`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCapacity, type Step } from '../../bench/deployment/capacity.js';
import { findMissed, parseObjectives } from '../../bench/deployment/objectives.js';
import { deploymentArguments } from '../../bench/deployment/options.js';
import { checkKey } from '../../bench/deployment/tenant.js';
import { findDifference } from '../../bench/deployment/verify.js';
import type { OwnKey } from '../../src/client/types.js';

test('parseObjectives reads limits with units, and = as at most', () => {
  const read = (text: string) =>
    parseObjectives(text, '--slo').map(({ metric, comparison, limit }) => [metric, comparison, limit]);
  assert.deepEqual(read('p99=50ms, errors<0.1%,p99.9<=1.5s'), [
    ['p99', '<=', 50],
    ['errors', '<', 0.1],
    ['p99.9', '<=', 1500],
  ]);
  assert.deepEqual(read('rate>1000/s,capacity>=2'), [
    ['rate', '>', 1000],
    ['capacity', '>=', 2],
  ]);
  for (const text of ['p98<5', 'p99', 'p99<', 'errors<5ms', 'rate>5%', 'p99<5ms;errors<1', ''])
    assert.throws(() => parseObjectives(text, '--slo'), /--slo ".*" must be like p99<50ms/, text);
});

test('findMissed names each missed limit with the measured value, and skips figures that were not measured', () => {
  const objectives = parseObjectives('p99<50ms,errors<1%,rate>100,capacity>5,max<=60', '--assert');
  assert.deepEqual(findMissed(objectives, { p99: 50, errors: 1, rate: 100, max: 60 }), [
    'p99 is 50 ms, not p99<50ms',
    'errors is 1%, not errors<1%',
    'rate is 100/s, not rate>100',
  ]);
  assert.deepEqual(findMissed(objectives, { p99: 49, errors: 0, rate: 101, max: 1, capacity: 6 }), []);
});

/** A deployment that meets the objectives up to a rate, except in the steps of `flaws`. */
async function search(limit: number, firstRate: number, flaws: readonly number[] = []) {
  const rates: number[] = [];
  const measure = async (rate: number): Promise<Step> => {
    rates.push(rate);
    return { rate, isMet: rate <= limit && !flaws.includes(rates.length) };
  };
  return { confirmed: await findCapacity(measure, firstRate), rates };
}

test('findCapacity finds the highest rate that holds three times, from below and from above', async () => {
  for (const limit of [3, 97, 1234, 88_000])
    for (const firstRate of [1, 100, 50_000]) {
      const { confirmed, rates } = await search(limit, firstRate);
      const [step, ...others] = confirmed ?? [];
      assert.ok(step !== undefined && others.length === 2, `${limit} from ${firstRate}`);
      assert.ok(step.rate <= limit && step.rate > limit / 1.06, `${step.rate} for ${limit}`);
      assert.deepEqual(rates.slice(-3), [step.rate, step.rate, step.rate]);
    }
});

test('findCapacity lowers the rate if a confirmation fails, and returns null if no rate is low enough', async () => {
  const good = await search(1000, 100);
  const failing = good.rates.length;
  const { confirmed } = await search(1000, 100, [failing]);
  const [before, after] = [good.confirmed?.[0]?.rate ?? 0, confirmed?.[0]?.rate ?? 0];
  assert.ok(after < before && after > before / 1.06, `${after} after ${before}`);
  const none = await search(0, 100);
  assert.equal(none.confirmed, null);
  assert.ok(none.rates.length < 10);
});

const key: OwnKey = {
  ...{ key_id: 'k', tenant: 'load', scopes: ['read', 'write'], development: false, created_at: '' },
  ...{ requests_per_minute: null, name: null, note: null, time_zone: 'UTC' },
};

test('checkKey names missing scopes, and a quota that is too low for the load', () => {
  const usual = { needsErasure: false, rate: 10 };
  assert.equal(checkKey(key, usual), null);
  assert.throws(
    () => checkKey(key, { ...usual, needsErasure: true }),
    /lacks the scope admin; .*keys -- create/,
  );
  const limited = { ...key, requests_per_minute: 600 };
  assert.equal(checkKey(limited, usual), null);
  assert.throws(
    () => checkKey(limited, { ...usual, rate: 11 }),
    /exceeds the quota.*allows 600 requests per minute/,
  );
  assert.throws(() => checkKey(limited, { ...usual, rate: Infinity }), /exceeds the quota/);
  assert.match(checkKey(limited, { ...usual, rate: null }) ?? '', /allows 600 requests per minute/);
});

test('findDifference compares learners, rows and duplicates', () => {
  const equal = { acknowledged: 5, uncertain: 0, found: 5, differences: 0, rows: 5, duplicates: 0 };
  assert.equal(findDifference(equal), null);
  assert.equal(findDifference({ ...equal, rows: null, duplicates: null }), null);
  assert.match(findDifference({ ...equal, differences: 2 }) ?? '', /^2 learners/);
  assert.match(findDifference({ ...equal, rows: 6 }) ?? '', /6 rows, but .* 5 answers/);
  assert.match(findDifference({ ...equal, duplicates: 1 }) ?? '', /1 duplicate/);
});

test('The options of a load test reject what does not fit together', () => {
  const read = (...options: string[]) =>
    deploymentArguments.read(['--url', 'http://[::1]:3000/api-proxy/', ...options]);
  const { host, port, basePath, authority, baseUrl } = read()?.address ?? {};
  assert.deepEqual([host, port, basePath, authority], ['::1', 3000, '/api-proxy', '[::1]:3000']);
  assert.equal(baseUrl, 'http://[::1]:3000/api-proxy');
  assert.deepEqual(read()?.settings.scenarios, ['single', 'batch', 'mixed', 'class', 'burst']);
  assert.deepEqual(read('--find-capacity')?.settings.scenarios, ['single']);
  assert.throws(() => read('--find-capacity', '--only', 'single,batch'), /one scenario/);
  assert.throws(() => read('--only', 'singles'), /must be one of single, batch/);
  assert.throws(() => read('--slo', 'p99=1ms'), /--slo needs --find-capacity/);
  assert.throws(() => read('--assert', 'rate>1,capacity>5'), /capacity needs --find-capacity/);
  assert.equal(read('--find-capacity', '--assert', 'capacity>5')?.settings.assert.length, 1);
  assert.deepEqual(read('--only', 'single,single')?.settings.scenarios, ['single']);
  assert.throws(() => read('--find-capacity', '--slo', 'capacity>1'), /cannot limit capacity/);
  assert.throws(() => read('--analyst-url', 'http://x'), /needs --verify/);
  assert.throws(() => deploymentArguments.read(['--url', 'skilltrace.example']), /must be an address/);
});
