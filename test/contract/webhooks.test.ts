/** Webhook endpoints over HTTP: create, read, change, delete, rotate secrets. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { indices } from '../../src/lists.js';
import { createEndpointStore } from '../../src/store/webhooks/endpoints.js';
import { callDescribed as call } from '../support/http/answer-check.js';
import { type Caller, callerOf, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { keysOf, redisOf, type Service, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const second = await service.second();
const store = createEndpointStore(await redisOf({ after }, service.redisUrl));

const callerIn = async (tenant: string, by: Pick<Service, 'port'> = service): Promise<Caller> =>
  callerOf(by, await keys.add({ tenant }));

const list = '/api/v1/webhooks';
const at = (id: string, more = ''): string => `${list}/${encodeURIComponent(id)}${more}`;

const notFound = '404 WEBHOOK_NOT_FOUND';
const invalid = '400 INVALID_REQUEST';

const url = 'https://hooks.example.org/skilltrace?a=b';
const body = { url, event_types: ['mastery.reached', 'goal.reached'] };
const create = async (by: Caller, change: object = {}) =>
  (await call(by, 'POST', list, { ...body, ...change })).json.data;

test('The webhook endpoints create, read, list, change and delete an entry', async () => {
  const by = await callerIn('whole');
  const created = await call(by, 'POST', list, { ...body, description: 'Küche 🙂', more: 1 });
  assert.equal(created.status, 201);
  const { secret, ...shown } = created.json.data;
  const { webhook_id, created_at } = shown;
  assert.match(webhook_id, /^wh_[\w-]{16}$/);
  assert.equal(Buffer.from(secret.replace(/^whsec_/, ''), 'base64').length, 32);
  assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
  const rest = { description: 'Küche 🙂', enabled: true, disabled_reason: null };
  assert.deepEqual(shown, { webhook_id, ...body, ...rest, created_at });
  const read = async () => (await call(by, 'GET', at(webhook_id))).json.data;
  assert.deepEqual(await read(), shown);
  assert.deepEqual((await call(by, 'GET', list)).json.data, { webhooks: [shown], next_cursor: null });

  const change = { url: 'https://other.example.org', event_types: ['*'] };
  const changed = await call(by, 'PATCH', at(webhook_id), { ...change, description: '', unknown: true });
  assert.deepEqual([changed.status, changed.json.data], [200, { ...shown, ...change, description: null }]);
  assert.deepEqual(await read(), changed.json.data);

  const deleted = await call(by, 'DELETE', at(webhook_id));
  assert.deepEqual([deleted.status, deleted.json.data], [200, { webhook_id }]);
  const calls = ['GET', 'DELETE', 'PATCH', 'POST /rotate-secret', 'POST /test', 'GET /deliveries'];
  for (const each of [...calls, 'POST /deliveries/msg_1/redeliver']) {
    const [method = '', more] = each.split(' ');
    const sent = method === 'PATCH' ? {} : undefined;
    assert.equal(outcomeOf(await call(by, method, at(webhook_id, more), sent)), notFound, each);
  }
});

test('PATCH /webhooks/{webhook_id} changes only the named fields and ignores null', async () => {
  const by = await callerIn('patched');
  const { secret: _, ...before } = await create(by, { description: 'kept' });
  const patch = async (change: unknown) => (await call(by, 'PATCH', at(before.webhook_id), change)).json.data;
  const nothing = { url: null, event_types: null, description: null, enabled: null };
  for (const change of [{}, nothing, { secret: 'whsec_mine', webhook_id: 'mine' }])
    assert.deepEqual(await patch(change), before);
  const off = { ...before, enabled: false, disabled_reason: 'request' };
  assert.deepEqual(await patch({ enabled: false }), off);
  assert.deepEqual(await patch({ description: 'kept' }), off);
  assert.equal(outcomeOf(await call(by, 'POST', at(before.webhook_id, '/test'))), '409 CONFLICT');
  const again = at(before.webhook_id, '/deliveries/msg_1/redeliver');
  assert.equal(outcomeOf(await call(by, 'POST', again)), '409 CONFLICT');
  assert.deepEqual(await patch({ enabled: true }), before);
  assert.equal(outcomeOf(await call(by, 'POST', again)), '404 NOT_FOUND');
});

const invalidFields: readonly (readonly [object, string, RegExp])[] = [
  [{ url: undefined }, 'url', /required/],
  [{ url: null }, 'url', /string/],
  [{ url: `https://a.example/${'x'.repeat(2048)}` }, 'url', /2048/],
  [{ url: 'https:hooks.example' }, 'url', /absolute/],
  [{ url: 'ftp://hooks.example' }, 'url', /absolute/],
  [{ url: 'https://a b.example' }, 'url', /absolute/],
  [{ url: ' https://a.example' }, 'url', /absolute/],
  [{ url: 'https://a.example\n' }, 'url', /control/],
  [{ url: 'https://a.example/\ud800' }, 'url', /surrogates/],
  [{ url: 'https://user@a.example' }, 'url', /user name/],
  [{ url: 'https://:pass@a.example' }, 'url', /user name/],
  [{ url: 'https://a.example/#' }, 'url', /fragment/],
  [{ url: 'http://a.example' }, 'url', /https/],
  ...[
    ...['127.0.0.1', '127.0.0.1.', '0x7f.1', '2130706433', '10.1.2.3', '169.254.169.254', '192.168.1.1'],
    ...['[::1]', '[fe80::1]', '[fd00::1]', '[::ffff:10.0.0.1]', '[64:ff9b::7f00:1]', '0.0.0.0'],
  ].map((host) => [{ url: `https://${host}:8443/x` }, 'url', /private address/] as const),
  [{ event_types: undefined }, 'event_types', /required/],
  [{ event_types: [] }, 'event_types', /1/],
  [{ event_types: ['goal.missed'] }, 'event_types/0', /one of/],
  [{ event_types: ['webhook.test'] }, 'event_types/0', /one of/],
  [{ event_types: ['goal.reached', 'goal.reached'] }, 'event_types', /duplicate/],
  [{ event_types: ['*', 'goal.reached'] }, 'event_types', /no other entry/],
  [{ event_types: Array(50).fill('*') }, 'event_types', /7 items/],
  [{ description: 'x'.repeat(257) }, 'description', /256/],
  [{ description: 'a\tb' }, 'description', /control/],
];

test('POST and PATCH /webhooks reject invalid fields by name and change nothing', async () => {
  const by = await callerIn('misfits');
  const { secret: _, ...before } = await create(by);
  for (const [change, field, message] of invalidFields) {
    const isAbsent = Object.values(change).some((value) => value === undefined || value === null);
    for (const [method, path, sent] of [
      ['POST', list, { ...body, ...change }],
      ...(isAbsent ? [] : ([['PATCH', at(before.webhook_id), change]] as const)),
    ] as const) {
      const answer = await call(by, method, path, sent);
      assert.equal(outcomeOf(answer), invalid, JSON.stringify(sent));
      const [problem] = answer.json.error.details;
      assert.equal(problem.path, field, answer.text);
      assert.match(problem.message, message);
    }
  }
  for (const sent of [[], 7, null]) assert.equal(outcomeOf(await call(by, 'POST', list, sent)), invalid);
  assert.deepEqual((await call(by, 'GET', list)).json.data.webhooks, [before]);
});

test('POST /webhooks accepts public addresses and any host name, because names can change', async () => {
  const by = await callerIn('hosts');
  for (const host of ['localhost', 'intranet.local', '8.8.8.8', '[2606:4700::1111]', 'пример.рф'])
    assert.equal((await create(by, { url: `https://${host}/` })).url, `https://${host}/`);
});

test('POST /webhooks creates at most ten endpoints per tenant under concurrent requests', async () => {
  const [first, other] = [await callerIn('many'), await callerIn('many', second)];
  const answers = await Promise.all(
    indices(30).map((i) => call(i % 2 === 0 ? first : other, 'POST', list, body)),
  );
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 10);
  for (const answer of answers.filter(({ status }) => status !== 201))
    assert.equal(outcomeOf(answer), '422 LIMIT_EXCEEDED');
  const ids = made.map(({ json }) => json.data.webhook_id);
  assert.equal((await call(first, 'DELETE', at(ids[0]))).status, 200);
  assert.equal((await call(first, 'POST', list, body)).status, 201);
  assert.equal(outcomeOf(await call(first, 'POST', list, body)), '422 LIMIT_EXCEEDED');
  assert.equal((await call(await callerIn('others'), 'POST', list, body)).status, 201);
});

test('GET /webhooks returns pages sorted by id', async () => {
  const by = await callerIn('paged');
  const ids = [];
  for (const _ of indices(5)) ids.push((await create(by)).webhook_id);
  const sorted = ids.sort();
  const pages = await readPages<{ webhook_id: string }>((query) => by.get(list + query), 'webhooks', 2);
  const seen = pages.map((page) => page.map(({ webhook_id }) => webhook_id));
  assert.deepEqual(seen, [sorted.slice(0, 2), sorted.slice(2, 4), sorted.slice(4)]);
});

test('POST /webhooks/{webhook_id}/rotate-secret returns the new secret once and keeps old ones on request', async () => {
  const by = await callerIn('secrets');
  const { webhook_id, secret: first, ...shown } = await create(by);
  const path = at(webhook_id, '/rotate-secret');
  const secrets = async () => (await store.find(keys.nameOf('secrets'), webhook_id))?.secrets;
  const rotate = async (sent?: unknown): Promise<string> => {
    const { status, json } = await call(by, 'POST', path, sent);
    const { secret, ...rest } = json.data;
    assert.deepEqual([status, rest], [200, { webhook_id, ...shown }]);
    return secret;
  };
  const made = [await rotate(), await rotate({}), await rotate({ revoke_old: null })].reverse();
  assert.equal(new Set([...made, first]).size, 4);
  assert.deepEqual(await secrets(), [...made, first]);
  const json = { 'Content-Type': 'application/json' };
  const emptyChunks = { ...json, 'Transfer-Encoding': 'chunked', 'Content-Length': null };
  for (const parts of [
    { headers: { ...json, 'Content-Length': '0' } },
    { headers: emptyChunks, body: '0\r\n\r\n' },
  ])
    assert.equal((await by.raw({ path, ...parts })).status, 200, 'an empty body');
  const alone = await rotate({ revoke_old: true });
  assert.deepEqual(await secrets(), [alone]);
  for (const answer of [await by.get(list), await by.get(at(webhook_id))])
    assert.doesNotMatch(answer.text, /whsec_/);
  const patched = await call(by, 'PATCH', at(webhook_id), {});
  assert.doesNotMatch(patched.text, /whsec_/);

  for (const _ of indices(9)) await rotate({ revoke_old: false });
  assert.equal(outcomeOf(await call(by, 'POST', path)), '422 LIMIT_EXCEEDED');
  assert.equal((await secrets())?.length, 10);
  for (const [parts, status] of [
    [{ headers: { 'Content-Type': null }, body: '{}' }, 415],
    [{ headers: { 'Content-Type': 'text/plain' }, body: '{}' }, 415],
    [{ body: '{' }, 400],
    [{ body: `"${'x'.repeat(17_000)}"` }, 413],
  ] as const)
    assert.equal((await by.raw({ path, ...parts })).status, status, `${status}`);
  for (const sent of [{ revoke_old: 'yes' }, [], 'all'])
    assert.equal(outcomeOf(await call(by, 'POST', path, sent)), invalid);
});
