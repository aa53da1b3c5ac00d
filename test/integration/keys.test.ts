import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hashKey } from '../../src/contracts/access/access.js';
import { createKeyStore } from '../../src/store/access/api-keys.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { runCommand } from '../support/commands/command.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { tempDir } from '../support/temp.js';

async function start(t: TestContext) {
  const redisUrl = await startTestRedis(t);
  const env = { REDIS_URL: redisUrl, DATA_DIR: await tempDir(t) };
  const keys = async (...args: string[]) => {
    const { code, out, err } = await runCommand('keys', env, ...args);
    return { code, out: out.trim(), err: err.trim() };
  };
  const redis = connectRedis(redisUrl);
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  return { keys, store: createKeyStore(redis) };
}

test('keys are created, listed and revoked', { timeout: 600_000 }, async (t) => {
  const { keys, store } = await start(t);
  const made = await keys('create');
  assert.deepEqual([made.code, made.err], [0, '']);
  assert.match(made.out, /^sk-[\w-]{32}$/);
  const keyHash = hashKey(made.out);
  assert.deepEqual(await store.findActive(keyHash).then((grant) => grant && { ...grant, createdAt: '' }), {
    keyHash,
    tenant: 'default',
    requestsPerMinute: 100,
    scopes: ['read', 'write', 'admin'],
    development: false,
    createdAt: '',
    revokedAt: null,
  });
  const own = await keys(
    'create',
    '--key',
    'mine',
    '--tenant',
    'school',
    '--unlimited',
    '--scopes',
    'write,read',
  );
  assert.equal(own.out, 'mine', own.err);

  const list = (await keys('list')).out.split('\n');
  assert.equal(list.length, 3);
  assert.match(
    list[1] ?? '',
    new RegExp(`^${keyHash.slice(0, 12)}  default  100/min    read,write,admin  20`),
  );
  assert.match(
    list[2] ?? '',
    new RegExp(`^${hashKey('mine').slice(0, 12)}  school   unlimited  read,write `),
  );

  assert.equal((await keys('revoke', 'mine')).code, 0);
  assert.equal((await keys('revoke', keyHash.slice(0, 12))).out, `revoked ${keyHash.slice(0, 12)}`);
  const gone = await keys('revoke', 'mine');
  assert.deepEqual([gone.code, gone.out, gone.err], [1, '', 'There is no such key']);
  assert.deepEqual(await store.listActive(), []);
});

test('a key in store takes a new quota, but no other tenant', { timeout: 600_000 }, async (t) => {
  const { keys, store } = await start(t);
  await keys('create', '--key', 'mine');
  assert.equal((await keys('create', '--key', 'mine', '--requests-per-minute', '7')).code, 0);
  assert.equal((await store.findActive(hashKey('mine')))?.requestsPerMinute, 7);
  const other = await keys('create', '--key', 'mine', '--tenant', 'b');
  assert.equal(other.code, 1);
  assert.match(other.err, /in store for tenant default .*create another one/);
});

test('wrong arguments of the keys command are refused', { timeout: 600_000 }, async (t) => {
  const { keys } = await start(t);
  assert.match((await keys('--help')).out, /^Usage: npm run keys/);
  const wrong: [string[], RegExp][] = [
    [[], /create, list or revoke is needed/],
    [['revoke'], /revoke takes one/],
    [['list', '--unlimited'], /only create takes options/],
    [['create', '--key', 'a:b'], /--key/],
    [['create', '--tenant', ''], /--tenant/],
    [['create', '--requests-per-minute', '0'], /--requests-per-minute/],
    [['create', '--requests-per-minute', '5', '--unlimited'], /exclude each other/],
    [['create', '--scopes', 'read,root'], /"root" is none of/],
  ];
  for (const [args, message] of wrong) {
    const { code, out, err } = await keys(...args);
    assert.deepEqual([code, out], [1, ''], args.join(' '));
    assert.match(err, message);
  }
});
