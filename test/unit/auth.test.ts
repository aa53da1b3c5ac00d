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

test('a look-up is trusted for 2 s: a revoked key works no longer', async () => {
  let stored: Grant | null = grant;
  let lookUps = 0;
  let time = 1_000_000;
  const find = async () => {
    lookUps += 1;
    return stored;
  };
  const { authenticate } = createAuthenticator({ find }, () => time);
  assert.equal(await authenticate('key'), grant);
  stored = null;
  time += 1999;
  assert.equal(authenticate('key'), grant, 'at once');
  assert.equal(lookUps, 1);
  time += 1;
  await assert.rejects(async () => authenticate('key'), { code: 'UNAUTHORIZED' });
  stored = grant;
  time += 1999;
  assert.throws(() => authenticate('key'), { code: 'UNAUTHORIZED' }, 'a key that is not known likewise');
  time += 1;
  assert.equal(await authenticate('key'), grant);
});

test('a look-up is trusted from when it was asked for: the process may have stood still before its answer', async () => {
  let time = 0;
  let lookUps = 0;
  const find = async () => {
    lookUps += 1;
    time += 60_000;
    return grant;
  };
  const { authenticate } = createAuthenticator({ find }, () => time);
  await authenticate('key');
  await authenticate('key');
  assert.equal(lookUps, 2);
});

test('a crowd of made-up keys pushes out no key that works, and is not looked up again and again itself', async () => {
  let lookUps = 0;
  const find = async (keyHash: string) => {
    lookUps += 1;
    return keyHash === hashKey('key') ? grant : null;
  };
  const { authenticate } = createAuthenticator({ find }, () => 0);
  await authenticate('key');
  for (let i = 0; i < 10_001; i++) await assert.rejects(async () => authenticate(`made-up ${i}`));
  assert.equal(authenticate('key'), grant, 'at once');
  const before = lookUps;
  assert.throws(() => authenticate('made-up 10000'), { code: 'UNAUTHORIZED' });
  assert.equal(lookUps, before);
  await assert.rejects(async () => authenticate('made-up 0'));
  assert.equal(lookUps, before + 1, 'the oldest of too many is forgotten');
});

test('of many keys each is told its own, again and again, and none like it is', async () => {
  const keys = Array.from({ length: 5000 }, (_, i) => `key ${i}`);
  const grants = new Map(keys.map((key) => [hashKey(key), { ...grant, tenant: key }]));
  const find = async (keyHash: string) => grants.get(keyHash) ?? null;
  const { authenticate } = createAuthenticator({ find }, () => 0);
  for (let round = 0; round < 3; round++)
    for (const key of keys) assert.equal((await authenticate(key)).tenant, key);
  for (const like of ['key 1 ', 'Key 1', 'key  1', 'kez 1'])
    for (let round = 0; round < 3; round++) await assert.rejects(async () => authenticate(like));
});
