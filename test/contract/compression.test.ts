/** Which calls of the API compress their responses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indices } from '../../src/lists.js';
import { callerOf, event } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const gzip = { 'Accept-Encoding': 'gzip' };
const ids = indices(300).map((i) => `compressed-${i}`);

test('Answers are recorded without compression', async () => {
  const { status, headers, text } = await caller.trackAll(
    ids.map((user_id) => event({ user_id })),
    gzip,
  );
  assert.deepEqual([status, headers['content-encoding'], headers.vary], [200, undefined, undefined]);
  assert.ok(text.length > 8192);
});

test('The mastery of a class and the description of the API are compressed on request', async () => {
  const headers = { 'X-API-Key': service.key, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ user_ids: ids });
  for (const [path, sent] of [
    ['/api/v1/mastery', { method: 'POST', body }],
    ['/openapi.json', {}],
  ] as const) {
    const [packed, plain] = await Promise.all(
      ['gzip', 'identity'].map((coding) =>
        fetch(service.baseUrl + path, { ...sent, headers: { ...headers, 'Accept-Encoding': coding } }),
      ),
    );
    assert.ok(packed && plain);
    assert.deepEqual([packed.status, plain.status], [200, 200], path);
    assert.equal(packed.headers.get('content-encoding'), 'gzip', path);
    for (const one of [packed, plain]) assert.equal(one.headers.get('vary'), 'Accept-Encoding', path);
    assert.ok(Number(packed.headers.get('content-length')) * 3 < Number(plain.headers.get('content-length')));
    assert.ok(Math.abs((await packed.text()).length / (await plain.text()).length - 1) < 0.01);
  }
});
