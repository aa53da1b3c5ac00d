import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Grant } from '../../src/contracts/access/access.js';
import { methodNotAllowed, pathNotFound } from '../../src/errors.js';
import { ClientDisconnectedError, type Exchange } from '../../src/http/exchange.js';
import {
  createCall,
  createGate,
  createQuotaGate,
  isLoopbackAuthority,
  isLoopbackHost,
} from '../../src/http/gate.js';
import type { Route } from '../../src/http/route.js';

test('throwIfDisconnected throws once the client has closed its connection', async () => {
  const head: Partial<Exchange> = { query: '', header: () => null, isDone: false, framingProblem: null };
  const exchange = head as Exchange;
  const route: Route = {
    ...{ method: 'GET', path: '/api/v1/health', scope: null, body: null, query: null },
    handle: ({ throwIfDisconnected }) => {
      throwIfDisconnected();
      exchange.isDone = true;
      throwIfDisconnected();
      return { status: 200, body: '' };
    },
  };
  const never = () => assert.fail('health needs no key');
  const gate = createGate({ authenticate: never }, { pass: never });
  const admitted = await gate(exchange, { route, allow: 'GET', isKeyless: true, parameters: 0 }, []);
  const call = createCall(exchange, admitted, Buffer.alloc(0), never);
  assert.throws(() => route.handle(call), ClientDisconnectedError);
  assert.equal(exchange.isDone, true);
});

test('isLoopbackHost accepts localhost and loopback addresses in every notation', () => {
  const loopback = `localhost LocalHost 127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 ::ffff:7f12:3456
    0000:0000:0000:0000:0000:0000:0000:0001 0000:0000:0000:0000:0000:ffff:7f00:0001`;
  for (const host of loopback.split(/\s+/)) assert.equal(isLoopbackHost(host), true, host);
  const others = `0.0.0.0 :: 126.255.255.255 128.0.0.1 ::2 ::ffff:10.0.0.1 ::127.0.0.1 localhost.example.org
    a.localhost 127.1 0x7f.1 2130706433 127.0.0.01 [::1]`;
  for (const host of ['', ...others.split(/\s+/)]) assert.equal(isLoopbackHost(host), false, host);
});

test('isLoopbackAuthority accepts Host headers that name this machine, with or without a port', () => {
  const loopback = `localhost localhost:3000 LOCALHOST:3000 localhost. localhost.:80 localhost: 127.0.0.1:3000
    127.8.9.10 [::1] [::1]:3000 [0:0:0:0:0:0:0:1]:1 [::FFFF:127.0.0.1]:80`;
  for (const host of loopback.split(/\s+/)) assert.equal(isLoopbackAuthority(host), true, host);
  const others = `:3000 example.org localhost.example.org 127.0.0.1.example.org a@localhost localhost:80:80
    localhost:x ::1 [127.0.0.1] [::1 ::1] [::2] [::1]x 192.0.2.1 localhost/.. localhost.. [::1%lo] localhost:123456`;
  for (const host of ['', ' localhost', 'localhost, example.org', ...others.split(/\s+/)])
    assert.equal(isLoopbackAuthority(host), false, host);
});

for (const quota of [100, 20_000])
  test(`A quota of ${quota} reports the rest of the window and renews when the window ends`, async () => {
    let [time, taken, endsAt] = [0, 0, 60_000];
    const take = async (_keyHash: string, amount: number) => {
      if (time >= endsAt) [taken, endsAt] = [0, time + 60_000];
      taken += amount;
      return { taken, endsInMs: endsAt - time };
    };
    const grant: Grant = {
      ...{ keyHash: 'hash', tenant: 'school', scopes: ['read'], development: false },
      requestsPerMinute: quota,
    };
    const { pass } = createQuotaGate({ take }, () => time);
    time = 59_000;
    assert.equal((await pass(grant)).RateLimit, `"default";r=${quota - 1};t=1`);
    taken = quota;
    for (let left = Math.floor(quota / 1000); left > 1; left--) await pass(grant);
    await assert.rejects(async () => pass(grant), { code: 'RATE_LIMITED' });
    time = 60_000;
    assert.equal((await pass(grant)).RateLimit, `"default";r=${quota - 1};t=60`);
  });

test('pathNotFound and methodNotAllowed name the request in printable, bounded text', () => {
  assert.equal(
    pathNotFound('GET', '/api/v1/nope').message,
    'Not found: GET /api/v1/nope. See /docs for the endpoints.',
  );
  assert.equal(
    pathNotFound('GET', '/api/v1/health/', true).message,
    'Not found: GET /api/v1/health/. Remove the slash at the end: /api/v1/health.',
  );
  assert.equal(methodNotAllowed('PATCH', 'POST').message, 'PATCH is not allowed here; use POST.');
  assert.equal(
    methodNotAllowed('PATCH', 'GET, HEAD, PUT').message,
    'PATCH is not allowed here; use GET, HEAD or PUT.',
  );
  assert.equal(methodNotAllowed('POST', 'POST').message, 'The method must be in upper case; use POST.');
  assert.equal(pathNotFound('HEAD', '/x').message, pathNotFound('GET', '/x').message);
  const hostile = `/\u0000\u001b[31m\n\u202e${'x'.repeat(10_000)}`;
  for (const { message } of [pathNotFound(hostile, hostile, true), methodNotAllowed(hostile, 'GET, HEAD')]) {
    assert.match(message, /^[ -~]+$/);
    assert.ok(message.length < 400, `${message.length} characters`);
  }
});
