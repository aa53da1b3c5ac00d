import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientGone, type Exchange } from '../../src/http/exchange.js';
import { createGate } from '../../src/http/gate.js';
import type { Route } from '../../src/http/routes.js';

test('work that is not begun yet learns that its client has gone', async () => {
  let gone = false;
  const exchange: Exchange = {
    method: 'GET',
    path: '/api/v1/health',
    query: '',
    requestId: 'r',
    header: () => null,
    headerNames: () => [],
    gone: () => gone,
    peer: () => '',
    framingProblem: null,
    body: async () => Buffer.alloc(0),
    answer: () => undefined,
    stream: async () => undefined,
  };
  const route: Route = {
    method: 'GET',
    path: '/api/v1/health',
    scope: null,
    body: null,
    queryNames: [],
    handle: ({ stillWanted }) => {
      stillWanted();
      gone = true;
      stillWanted();
      return { status: 200, body: '' };
    },
  };
  const never = () => assert.fail('no key is asked for');
  const gate = createGate({ authenticate: never }, { pass: never });
  const match = { route, allow: 'GET', keyless: true, parameters: [] };
  await assert.rejects(gate(exchange, match, {}), ClientGone);
  assert.equal(gone, true);
});
