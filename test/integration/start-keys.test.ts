/** What a start does with keys: those that are configured, the development key, and those that were revoked. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { prepareDemoKey, prepareKeys, removeDemoKey } from '../../src/app/startup/prepare-keys.js';
import { loadConfig } from '../../src/config.js';
import { allScopes, defaultScopes, hashKey } from '../../src/contracts/access/access.js';
import { createLogger } from '../../src/logger.js';
import { createKeyStore } from '../../src/store/access/api-keys.js';
import { apiKeysKey } from '../../src/store/redis/keys.js';
import { runCommand } from '../support/commands/command.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const LIMIT = { timeout: 600_000 };

async function stage(t: TestContext) {
  const DATA_DIR = await tempDir(t);
  const redisUrl = await startTestRedis(t);
  const redis = await redisOf(t, redisUrl);
  const log: { msg: string; hash?: string }[] = [];
  const logger = createLogger('info', 'test', { write: (line) => log.push(JSON.parse(line)) });
  const file = join(DATA_DIR, 'api-key');
  return {
    store: createKeyStore(redis),
    redis,
    log,
    file,
    keyInFile: () => readFileSync(file, 'utf8').trim(),
    /** What the user is told. */
    start: async (settings: Record<string, string> = {}) =>
      (await prepareKeys(loadConfig({ DATA_DIR, ...settings }), redis, logger)).text,
    demoKey: (tenant: string, settings: Record<string, string> = {}) =>
      prepareDemoKey(loadConfig({ DATA_DIR, ...settings }), redis, tenant),
    removeDemoKey: (tenant: string) => removeDemoKey(loadConfig({ DATA_DIR }), redis, tenant),
    demoFile: join(DATA_DIR, 'demo-key'),
    command: (...args: string[]) => runCommand('keys', { REDIS_URL: redisUrl, DATA_DIR }, ...args),
  };
}

test('the development key is made once, marked, with every scope', LIMIT, async (t) => {
  const { start, store, keyInFile, file, log } = await stage(t);
  const note = await start();
  assert.equal(note, `development API key: ${keyInFile()}`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const stored = await store.findActive(hashKey(keyInFile()));
  assert.deepEqual(stored && [stored.development, stored.scopes, stored.requestsPerMinute], [
    true,
    allScopes,
    null,
  ]);
  assert.equal(await start(), note);
  assert.equal((await store.all()).length, 1);
  assert.equal(await start({ API_KEYS: 'other' }), null, 'with configured keys it is not told');
  assert.deepEqual(log, []);
});

for (const how of ['key', 'hash'] as const) {
  test(`a development key that was revoked by its ${how} is replaced by a fresh one`, LIMIT, async (t) => {
    const { start, store, keyInFile, log, command } = await stage(t);
    await start();
    const revoked = keyInFile();
    const named = how === 'key' ? revoked : hashKey(revoked).slice(0, 12);
    assert.equal((await command('revoke', named)).code, 0);
    const note = await start();
    const fresh = keyInFile();
    assert.notEqual(fresh, revoked);
    assert.equal(note, `development API key: ${fresh}`);
    assert.deepEqual(
      log.map(({ msg }) => msg),
      ['the development key was revoked and stays so: a fresh one takes its place'],
    );
    assert.equal(await store.findActive(hashKey(revoked)), null);
    assert.equal((await store.findActive(hashKey(fresh)))?.development, true);
    assert.equal(await start(), note, 'once');
    assert.equal(log.length, 1);
  });
}

test('beside another live key no development key is made', LIMIT, async (t) => {
  const { start, store, keyInFile, log } = await stage(t);
  await start();
  const revoked = keyInFile();
  await store.revoke(hashKey(revoked));
  assert.equal(await start({ API_KEYS: 'other' }), null);
  assert.equal(await start(), null);
  assert.equal(keyInFile(), revoked);
  assert.deepEqual(
    (await store.listActive()).map(({ keyHash }) => keyHash),
    [hashKey('other')],
  );
  const warning = 'the development key was revoked and stays so: delete its file';
  assert.deepEqual(
    log.map(({ msg }) => msg),
    [warning, warning],
  );
});

test(
  'a revoked key that is configured stays revoked, and is warned of without being told',
  LIMIT,
  async (t) => {
    const { start, store, log, command, keyInFile } = await stage(t);
    const API_KEYS = 'named-key:school:7,kept-key:school:7';
    await start({ API_KEYS });
    assert.equal((await command('revoke', 'named-key')).code, 0);
    assert.equal(await start({ API_KEYS }), null);
    assert.equal(await store.findActive(hashKey('named-key')), null);
    assert.equal((await store.findActive(hashKey('kept-key')))?.requestsPerMinute, 7);
    assert.match(log[0]?.msg ?? '', /^a configured key was revoked and stays so/);
    assert.equal(log[0]?.hash, hashKey('named-key').slice(0, 12));
    assert.doesNotMatch(JSON.stringify(log), /named-key/);
    const created = await command('create', '--key', 'named-key');
    assert.deepEqual([created.code, created.out], [1, '']);
    assert.match(created.err, /was revoked and stays so/);
    await command('revoke', 'kept-key');
    const note = await start({ API_KEYS });
    assert.equal(note, `development API key: ${keyInFile()}`, 'no live key is left');
  },
);

test(
  'the key of a demo is of its tenant, ends with it, and leaves the first start its own',
  LIMIT,
  async (t) => {
    const { start, store, demoKey, removeDemoKey, demoFile, keyInFile } = await stage(t);
    const key = (await demoKey('demo')) ?? '';
    assert.equal(readFileSync(demoFile, 'utf8').trim(), key);
    assert.equal(statSync(demoFile).mode & 0o777, 0o600);
    const stored = await store.findActive(hashKey(key));
    assert.deepEqual(stored && [stored.tenant, stored.development, stored.scopes], ['demo', true, allScopes]);
    assert.equal(await demoKey('demo'), key, 'once');
    const other = (await demoKey('school')) ?? '';
    assert.equal((await store.findActive(hashKey(other)))?.tenant, 'school');
    assert.equal(await start(), `development API key: ${keyInFile()}`);
    assert.notEqual(keyInFile(), key);
    await removeDemoKey('demo');
    await removeDemoKey('demo');
    assert.deepEqual([existsSync(demoFile), await store.findActive(hashKey(key))], [false, null]);
    assert.notEqual(await store.findActive(hashKey(other)), null);
    const fresh = (await demoKey('demo')) ?? '';
    await store.revoke(hashKey(fresh));
    assert.notEqual(await demoKey('demo'), fresh, 'a revoked one is replaced');
  },
);

test('where others can reach the service no development key is made', LIMIT, async (t) => {
  const { start, store, demoKey, file, demoFile, keyInFile } = await stage(t);
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'example.org'])
    assert.match((await start({ HOST })) ?? '', /^no API key is in store; .*npm run keys -- create/);
  assert.equal(await demoKey('demo', { HOST: '0.0.0.0' }), null);
  assert.deepEqual([existsSync(file), existsSync(demoFile), await store.all()], [false, false, []]);
  for (const HOST of ['localhost', '::1']) await start({ HOST });
  const note = await start({ HOST: '0.0.0.0' });
  assert.equal(
    note,
    `development API key, on this machine only: ${keyInFile()}; for others: npm run keys -- create`,
  );
});

test(
  'a development key in store without its mark is marked, whatever else is configured',
  LIMIT,
  async (t) => {
    const { start, store, redis, keyInFile } = await stage(t);
    await start();
    const keyHash = hashKey(keyInFile());
    const unmarked = {
      ...{ tenant: 'default', requestsPerMinute: null, scopes: defaultScopes, development: false },
      ...{ createdAt: '2026-01-01T00:00:00.000Z', revokedAt: null },
    };
    await redis.hset(apiKeysKey, keyHash, JSON.stringify(unmarked));
    assert.equal((await store.findActive(keyHash))?.development, false);
    await start({ HOST: '0.0.0.0', API_KEYS: 'other' });
    const [marked] = await store.listActive();
    const { createdAt, development, scopes } = marked ?? {};
    assert.deepEqual([createdAt, development, scopes], [unmarked.createdAt, true, allScopes]);
  },
);

test('a quota that is set at the same moment does not undo a revocation', LIMIT, async (t) => {
  const { store } = await stage(t);
  const grant = { tenant: 'a', scopes: defaultScopes, requestsPerMinute: 1, development: false };
  for (let i = 0; i < 50; i++) {
    const keyHash = hashKey(`key-${i}`);
    await store.save({ ...grant, keyHash });
    const put = () => store.save({ ...grant, keyHash, requestsPerMinute: 2 });
    await Promise.all([put(), store.revoke(keyHash), put(), put()]);
    assert.equal(await store.findActive(keyHash), null);
  }
});
