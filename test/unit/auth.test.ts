import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Grant } from '../../src/contracts/access/access.js';
import { hashKey } from '../../src/contracts/access/access.js';
import { createAuthenticator } from '../../src/http/authenticator.js';

const grant: Grant = {
  keyHash: 'hash',
  tenant: 'school',
  scopes: ['read'],
  requestsPerMinute: null,
  development: false,
};

test('The authenticator caches a lookup for two seconds', async () => {
  let stored: Grant | null = grant;
  let lookups = 0;
  let time = 1_000_000;
  const find = async () => {
    lookups += 1;
    return stored;
  };
  const { authenticate } = createAuthenticator({ find }, () => time);
  assert.equal(await authenticate('key'), grant);
  stored = null;
  time += 1999;
  assert.equal(authenticate('key'), grant, 'the cached grant is not returned immediately');
  assert.equal(lookups, 1);
  time += 1;
  await assert.rejects(async () => authenticate('key'), { code: 'UNAUTHORIZED' });
  stored = grant;
  time += 1999;
  assert.throws(() => authenticate('key'), { code: 'UNAUTHORIZED' });
  time += 1;
  assert.equal(await authenticate('key'), grant);
});

test('The authenticator measures the age of a lookup from its start, because the process may stall', async () => {
  let time = 0;
  let lookups = 0;
  const find = async () => {
    lookups += 1;
    time += 60_000;
    return grant;
  };
  const { authenticate } = createAuthenticator({ find }, () => time);
  await authenticate('key');
  await authenticate('key');
  assert.equal(lookups, 2);
});

test('The authenticator keeps valid keys and caches unknown ones when many unknown keys arrive', async () => {
  let lookups = 0;
  const find = async (keyHash: string) => {
    lookups += 1;
    return keyHash === hashKey('key') ? grant : null;
  };
  const { authenticate } = createAuthenticator({ find }, () => 0);
  await authenticate('key');
  for (let i = 0; i < 10_001; i++) await assert.rejects(async () => authenticate(`made-up ${i}`));
  assert.equal(authenticate('key'), grant, 'the cached grant is not returned immediately');
  const before = lookups;
  assert.throws(() => authenticate('made-up 10000'), { code: 'UNAUTHORIZED' });
  assert.equal(lookups, before);
  await assert.rejects(async () => authenticate('made-up 0'));
  assert.equal(lookups, before + 1, 'the oldest unknown key is still cached');
});

test('The authenticator returns the grant of each key and rejects similar keys', async () => {
  const keys = Array.from({ length: 2000 }, (_, i) => `key ${i}`);
  const grants = new Map(keys.map((key) => [hashKey(key), { ...grant, tenant: key }]));
  const find = async (keyHash: string) => grants.get(keyHash) ?? null;
  const { authenticate } = createAuthenticator({ find }, () => 0);
  for (const _ of [1, 2]) for (const key of keys) assert.equal((await authenticate(key)).tenant, key);
  for (const similar of ['key 1 ', 'Key 1', 'key  1', 'kez 1'])
    for (const _ of [1, 2]) await assert.rejects(async () => authenticate(similar));
});
