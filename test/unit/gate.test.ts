import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientDisconnectedError, type Exchange } from '../../src/http/exchange.js';
import { createCall, createGate } from '../../src/http/gate.js';
import type { Route } from '../../src/http/route.js';

test('work that is not begun yet learns that its client has gone', async () => {
  const head: Partial<Exchange> = { query: '', header: () => null, isDone: false, framingProblem: null };
  const exchange = head as Exchange;
  const route: Route = {
    method: 'GET',
    path: '/api/v1/health',
    scope: null,
    body: null,
    query: null,
    handle: ({ throwIfDisconnected }) => {
      throwIfDisconnected();
      exchange.isDone = true;
      throwIfDisconnected();
      return { status: 200, body: '' };
    },
  };
  const never = () => assert.fail('no key is asked for');
  const gate = createGate({ authenticate: never }, { pass: never });
  const match = { route, allow: 'GET', isKeyless: true, parameters: 0 };
  const admitted = await gate(exchange, match, []);
  assert.throws(
    () => route.handle(createCall(exchange, admitted, Buffer.alloc(0), never)),
    ClientDisconnectedError,
  );
  assert.equal(exchange.isDone, true);
});
