/** The development key opens the service to nobody but its own machine, wherever it listens. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { after, test } from 'node:test';
import { allScopes, hashKey } from '../../src/contracts/access/access.js';
import { callerOf, exchangeRaw, rawRequest } from '../support/http/http.js';
import { keysOf, startService } from '../support/servers/service.js';

const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
const hasIpv6 = addresses.some(({ address }) => address === '::1');
const service = await startService({ after }, { host: hasIpv6 ? '::' : '0.0.0.0' });
const keys = await keysOf({ after }, service);
const developmentKey = 'a-development-key';
await keys.store.save({
  keyHash: hashKey(developmentKey),
  tenant: 'default',
  requestsPerMinute: null,
  scopes: allScopes,
  development: true,
});
const ordinaryKey = await keys.add();

/** The status for a request to one of the machine's addresses, which says that it is for this machine. */
const statusAt = (host: string, key: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { Host: 'localhost', 'X-API-Key': key };
    const asked = request({ host, port: service.port, path: '/api/v1/skills', headers, agent: false });
    asked.on('response', (response) => resolve(response.resume().statusCode));
    asked.on('error', reject);
    asked.end();
  });

const ask = (headers: Record<string, string | string[] | null>) =>
  exchangeRaw(
    service.port,
    rawRequest(developmentKey, {
      method: 'GET',
      path: '/api/v1/skills',
      headers: { Host: 'localhost', ...headers },
    }),
  );

test('it works from the loopback addresses', async () => {
  for (const host of ['127.0.0.1', '127.0.0.2', ...(hasIpv6 ? ['::1'] : [])])
    assert.equal(await statusAt(host, developmentKey), 200, host);
});

test('it does not work from any other address, not even of the same machine', async () => {
  const others = addresses.filter(({ internal, scopeid }) => !internal && !scopeid);
  for (const { address } of others.filter(({ family }) => hasIpv6 || family === 'IPv4')) {
    assert.equal(await statusAt(address, developmentKey), 401, address);
    assert.equal(await statusAt(address, ordinaryKey), 200, address);
  }
});

test('Host has to be this machine: a page on the web can have its own name resolved to it', async () => {
  for (const Host of ['localhost', `LOCALHOST.:${service.port}`, `127.0.0.1:${service.port}`, '[::1]:80'])
    assert.equal((await ask({ Host })).status, 200, Host);
  for (const Host of [
    'evil.example',
    'localhost.evil.example',
    '192.0.2.1',
    `[fd00::1]:${service.port}`,
    'test',
  ]) {
    const { status, headers, text } = await ask({ Host });
    assert.deepEqual([status, headers['www-authenticate']], [401, 'ApiKey'], Host);
    assert.match(text, /"UNAUTHORIZED".*npm run keys -- create/);
  }
  assert.equal((await ask({ Host: ['localhost', 'localhost'] })).status, 400);
});

test('it does not work through a proxy', async () => {
  const marks = [
    'Forwarded',
    'Via',
    'X-Forwarded-For',
    'x-forwarded-host',
    'X-FORWARDED-PROTO',
    'X-Forwarded-Any',
  ];
  for (const name of marks) {
    assert.equal((await ask({ [name]: '127.0.0.1' })).status, 401, name);
    assert.equal((await ask({ [name]: '' })).status, 401, `${name} without a value`);
  }
  assert.equal((await ask({ 'X-Forwarded': 'for no proxy' })).status, 200);
});

test('it is refused before anything else is told, with a body and when it is looked up anew too', async () => {
  const fromElsewhere = { method: 'POST', headers: { Host: 'evil.example' }, body: '{"user_id":7}' };
  for (const path of ['/api/v1/nothing', '/api/v1/mastery/ada', '/api/v1/track-answer'])
    assert.equal((await callerOf(service, developmentKey).raw({ ...fromElsewhere, path })).status, 401, path);
  const fresh = 'another-development-key';
  const grant = { tenant: 'default', requestsPerMinute: null, scopes: allScopes, development: true };
  await keys.store.save({ keyHash: hashKey(fresh), ...grant });
  const caller = callerOf(service, fresh);
  const answers = await Promise.all([
    caller.raw({ ...fromElsewhere, path: '/api/v1/track-answer' }),
    caller.get('/api/v1/skills', { Host: 'localhost' }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [401, 200],
  );
});

test('other keys are not asked where they come from', async () => {
  const headers = { Host: 'evil.example', Via: '1.1 proxy', 'X-Forwarded-For': '192.0.2.1' };
  assert.equal((await callerOf(service, ordinaryKey).get('/api/v1/skills', headers)).status, 200);
});
