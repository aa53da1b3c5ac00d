/** API keys at the start of the service, and `npm run keys`. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { prepareDemoKey, prepareKeys, removeDemoKey } from '../../src/app/startup/prepare-keys.js';
import { loadConfig } from '../../src/config.js';
import { allScopes, defaultScopes, hashKey } from '../../src/contracts/access/access.js';
import { createLogger } from '../../src/logger.js';
import { createKeyStore, createQuotaCounter } from '../../src/store/access/api-keys.js';
import { apiKeysKey, quotaKey } from '../../src/store/redis/keys.js';
import { runCommand } from '../support/commands/command.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const redisUrl = await startTestRedis({ after });
const redis = await redisOf({ after }, redisUrl);
const store = createKeyStore(redis);

/** A data folder and a Redis without keys. */
async function prepare(t: TestContext) {
  await redis.flushdb();
  const DATA_DIR = await tempDir(t);
  const log: { msg: string; hash?: string }[] = [];
  const logger = createLogger('info', 'test', { write: (line) => log.push(JSON.parse(line)) });
  const load = (settings: Record<string, string> = {}) => loadConfig({ DATA_DIR, ...settings });
  const file = join(DATA_DIR, 'api-key');
  return {
    log,
    file,
    demoFile: join(DATA_DIR, 'demo-key'),
    readKey: () => readFileSync(file, 'utf8').trim(),
    /** @returns the message for the user */
    start: async (settings?: Record<string, string>) =>
      (await prepareKeys(load(settings), redis, logger)).text,
    createDemoKey: async (tenant: string, settings?: Record<string, string>) =>
      (await prepareDemoKey(load(settings), redis, tenant)) ?? '',
    removeDemoKey: (tenant: string) => removeDemoKey(load(), redis, tenant),
    keys: async (...args: string[]) => {
      const { code, out, err } = await runCommand('keys', { REDIS_URL: redisUrl, DATA_DIR }, ...args);
      return { code, out: out.trim(), err: err.trim() };
    },
  };
}

test('A start creates a development key once, with every scope and no quota', async (t) => {
  const { start, readKey, file, log } = await prepare(t);
  const message = await start();
  assert.equal(message, `development API key: ${readKey()}`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const { development, scopes, requestsPerMinute } = (await store.findActive(hashKey(readKey()))) ?? {};
  assert.deepEqual([development, scopes, requestsPerMinute], [true, allScopes, null]);
  assert.equal(await start(), message);
  assert.equal((await store.all()).length, 1);
  assert.equal(await start({ API_KEYS: 'other' }), null, 'shown although another key is configured');
  assert.deepEqual(log, []);
});

test('A start replaces a revoked development key, by key or hash, unless another key is active', async (t) => {
  const { start, readKey, log, keys } = await prepare(t);
  await start();
  for (const name of [(key: string) => key, (key: string) => hashKey(key).slice(0, 12)]) {
    const revoked = readKey();
    assert.equal((await keys('revoke', name(revoked))).code, 0);
    const message = await start();
    assert.notEqual(readKey(), revoked);
    assert.equal(message, `development API key: ${readKey()}`);
    assert.match(log.pop()?.msg ?? '', /^the development key is revoked; a new development key/);
    assert.equal(await store.findActive(hashKey(revoked)), null);
    assert.equal((await store.findActive(hashKey(readKey())))?.development, true);
    assert.equal(await start(), message, 'replaced twice');
    assert.deepEqual(log, []);
  }
  const last = readKey();
  await store.revoke(hashKey(last));
  for (const settings of [{ API_KEYS: 'other' }, {}]) {
    assert.equal(await start(settings), null);
    assert.equal(log.pop()?.msg, 'the development key is revoked; delete its file');
  }
  assert.equal(readKey(), last);
  const [active, ...others] = await store.listActive();
  assert.deepEqual([active?.keyHash, others], [hashKey('other'), []]);
});

test('A start keeps a configured key revoked and logs a warning without the key', async (t) => {
  const { start, log, keys, readKey } = await prepare(t);
  const API_KEYS = 'named-key:school:7,active-key:school:7';
  await start({ API_KEYS });
  assert.equal((await keys('revoke', 'named-key')).code, 0);
  assert.equal(await start({ API_KEYS }), null);
  assert.equal(await store.findActive(hashKey('named-key')), null);
  assert.equal((await store.findActive(hashKey('active-key')))?.requestsPerMinute, 7);
  assert.match(log[0]?.msg ?? '', /^a configured key is revoked and stays revoked/);
  assert.equal(log[0]?.hash, hashKey('named-key').slice(0, 12));
  assert.doesNotMatch(JSON.stringify(log), /named-key/);
  const created = await keys('create', '--key', 'named-key');
  assert.deepEqual([created.code, created.out], [1, '']);
  assert.match(created.err, /is revoked and cannot be enabled again/);
  await keys('revoke', 'active-key');
  assert.equal(await start({ API_KEYS }), `development API key: ${readKey()}`, 'no key is active');
});

test('A demo has a separate development key, which is removed with the demo', async (t) => {
  const { start, createDemoKey, removeDemoKey, demoFile, readKey } = await prepare(t);
  const key = await createDemoKey('demo');
  assert.equal(readFileSync(demoFile, 'utf8').trim(), key);
  assert.equal(statSync(demoFile).mode & 0o777, 0o600);
  const { tenant, development, scopes } = (await store.findActive(hashKey(key))) ?? {};
  assert.deepEqual([tenant, development, scopes], ['demo', true, allScopes]);
  assert.equal(await createDemoKey('demo'), key);
  const other = await createDemoKey('school');
  assert.equal((await store.findActive(hashKey(other)))?.tenant, 'school');
  assert.equal(await start(), `development API key: ${readKey()}`);
  assert.notEqual(readKey(), key);
  for (let i = 0; i < 2; i++) await removeDemoKey('demo');
  assert.deepEqual([existsSync(demoFile), await store.findActive(hashKey(key))], [false, null]);
  assert.notEqual(await store.findActive(hashKey(other)), null);
  const fresh = await createDemoKey('demo');
  await store.revoke(hashKey(fresh));
  assert.notEqual(await createDemoKey('demo'), fresh, 'the revoked key is still used');
});

test('A start with a public HOST creates no development key and names npm run keys', async (t) => {
  const { start, createDemoKey, file, demoFile, readKey } = await prepare(t);
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'example.org'])
    assert.match((await start({ HOST })) ?? '', /^no API key exists; .*npm run keys -- create/);
  assert.equal(await createDemoKey('demo', { HOST: '0.0.0.0' }), '');
  assert.deepEqual([existsSync(file), existsSync(demoFile), await store.all()], [false, false, []]);
  for (const HOST of ['localhost', '::1']) await start({ HOST });
  const message = `development API key, for this machine only: ${readKey()}; for other machines: npm run keys -- create`;
  assert.equal(await start({ HOST: '0.0.0.0' }), message);
});

test('A start restores the flag and scopes of a development key that is stored as an ordinary key', async (t) => {
  const { start, readKey } = await prepare(t);
  await start();
  const keyHash = hashKey(readKey());
  const grant = { tenant: 'default', requestsPerMinute: null, scopes: defaultScopes, development: false };
  const ordinary = { ...grant, createdAt: '2026-01-01T00:00:00.000Z', revokedAt: null };
  await redis.hset(apiKeysKey, keyHash, JSON.stringify(ordinary));
  await start({ HOST: '0.0.0.0', API_KEYS: 'other' });
  const { createdAt, development, scopes } = (await store.findActive(keyHash)) ?? {};
  assert.deepEqual([createdAt, development, scopes], [ordinary.createdAt, true, allScopes]);
});

test('The key store keeps a key revoked when a quota is set at the same time', async (t) => {
  await prepare(t);
  const grant = { tenant: 'a', scopes: defaultScopes, requestsPerMinute: 1, development: false };
  for (let i = 0; i < 30; i++) {
    const keyHash = hashKey(`key-${i}`);
    await store.save({ ...grant, keyHash });
    const setQuota = () => store.save({ ...grant, keyHash, requestsPerMinute: 2 });
    await Promise.all([setQuota(), store.revoke(keyHash), setQuota(), setQuota()]);
    assert.equal(await store.findActive(keyHash), null);
  }
});

test('A quota counter ends 60 seconds after its first request, which later requests do not postpone', async (t) => {
  await prepare(t);
  const { take } = createQuotaCounter(redis);
  assert.deepEqual(await take('hash', 20), { taken: 20, endsInMs: 60_000 });
  const left = await redis.pttl(quotaKey('hash'));
  assert.ok(left > 0 && left <= 60_000, `the counter ends in ${left} ms`);
  await redis.pexpire(quotaKey('hash'), 30_000);
  const { taken, endsInMs } = await take('hash', 1);
  assert.equal(taken, 21);
  assert.ok(endsInMs <= 30_000, `${endsInMs}`);
});

test('npm run keys creates, lists and revokes keys', async (t) => {
  const { keys } = await prepare(t);
  const created = await keys('create');
  assert.deepEqual([created.code, created.err], [0, '']);
  assert.match(created.out, /^sk-[\w-]{32}$/);
  const keyHash = hashKey(created.out);
  const { createdAt: _, ...grant } = (await store.findActive(keyHash)) ?? {};
  assert.deepEqual(grant, {
    ...{ keyHash, tenant: 'default', requestsPerMinute: 100, scopes: ['read', 'write', 'admin'] },
    ...{ development: false, revokedAt: null, name: null, note: null },
  });
  const options = ['--key', 'mine', '--tenant', 'school', '--unlimited', '--scopes', 'write,read'];
  assert.equal((await keys('create', ...options)).out, 'mine');
  const [, first = '', second = '', ...rest] = (await keys('list')).out.split('\n');
  assert.match(first, new RegExp(`^${keyHash.slice(0, 12)}  default  100/min    read,write,admin  20`));
  assert.match(second, new RegExp(`^${hashKey('mine').slice(0, 12)}  school   unlimited  read,write `));
  assert.deepEqual(rest, []);

  assert.equal((await keys('revoke', 'mine')).code, 0);
  assert.equal((await keys('revoke', keyHash.slice(0, 12))).out, `revoked ${keyHash.slice(0, 12)}`);
  assert.deepEqual(await keys('revoke', 'mine'), {
    code: 1,
    out: '',
    err: 'No active key matches. npm run keys -- list shows the hashes',
  });
  assert.deepEqual(await store.listActive(), []);
});

test('npm run keys changes the quota of a stored key and never its tenant', async (t) => {
  const { keys } = await prepare(t);
  const create = (...args: string[]) => keys('create', '--key', 'mine', ...args);
  await create();
  assert.equal((await create('--requests-per-minute', '7')).code, 0);
  assert.equal((await store.findActive(hashKey('mine')))?.requestsPerMinute, 7);
  const other = await create('--tenant', 'b');
  assert.equal(other.code, 1);
  assert.match(other.err, /exists for tenant default .*Create another key/);
});

test('npm run keys sets and shows the name and the note, and the last use', async (t) => {
  const { keys } = await prepare(t);
  await keys('create', '--key', 'mine', '--name', 'Reports', '--note', 'School 1');
  const id = hashKey('mine').slice(0, 12);
  await store.recordUses([hashKey('mine')], Date.parse('2026-03-01T10:05:00Z'));
  assert.match((await keys('list')).out, /2026-03-01T10:05:00.000Z {2}Reports {2}School 1/);
  const changed = await keys('change', id, '--name', '', '--note', 'School 2');
  assert.deepEqual([changed.code, changed.out], [0, `changed ${id}`]);
  const { name, note } = (await store.findActive(hashKey('mine'))) ?? {};
  assert.deepEqual([name, note], [null, 'School 2']);
  assert.equal((await keys('change', 'unknown0', '--name', 'x')).code, 1);
});

test('npm run keys rejects wrong arguments', async (t) => {
  const { keys } = await prepare(t);
  const cases: [args: string, message: RegExp][] = [
    ['', /Pass create, list, change or revoke/],
    ['revoke', /Pass one KEY or HASH/],
    ['list --unlimited', /--unlimited does not apply to list/],
    ['change 12345678 --tenant a', /--tenant does not apply to change/],
    ['constructor --name x', /Pass create, list, change or revoke/],
    ['--name x', /Pass create, list, change or revoke/],
    ['change 12345678', /Pass --name or --note/],
    ['change --name x', /Pass one KEY or HASH to change/],
    [`create --name ${'x'.repeat(65)}`, /--name must have up to 64 characters/],
    ['create --key a:b', /--key/],
    ['create --tenant=', /--tenant/],
    ['create --requests-per-minute 0', /--requests-per-minute/],
    ['create --requests-per-minute 5 --unlimited', /Pass either --unlimited or --requests-per-minute/],
    ['create --scopes read,root', /"root" must be one of/],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await keys(...args.split(' ').filter((arg) => arg !== ''));
    assert.deepEqual([code, out], [1, ''], args);
    assert.match(err, message);
  }
});
