/** Endpoints of webhooks over HTTP: what is set, what is shown, and who sees it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { subscribableTypes } from '../../src/contracts/webhooks/webhooks.js';
import { indices } from '../../src/lists.js';
import { createEndpointStore } from '../../src/store/webhooks/endpoints.js';
import { assertAnswer } from '../support/http/answer-check.js';
import { type Caller, callerOf, type JsonAnswer, type RequestParts } from '../support/http/http.js';
import { targetOf } from '../support/http/route-table.js';
import { keysOf, redisOf, type Service, sharedService, startSecondApi } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const second = await service.second();
const store = createEndpointStore(await redisOf({ after }, service.redisUrl));

/** A caller of a tenant of its own. */
const callerIn = async (tenant: string, by: Pick<Service, 'port'> = service): Promise<Caller> =>
  callerOf(by, await keys.add({ tenant }));

const list = '/api/v1/webhooks';
const at = (id: string, more = ''): string => `${list}/${encodeURIComponent(id)}${more}`;

/** Every answer of this file is one of the contract. */
async function ask(by: Caller, method: string, path: string, body?: unknown): Promise<JsonAnswer> {
  const content: Partial<RequestParts> = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await by.call({ method, path, ...content });
  assertAnswer(answer, { method, target: targetOf(method, path.split('?')[0] as string), requestId: null });
  return answer;
}
const told = ({ status, json }: JsonAnswer): [number, string] => [status, json.error?.code];
const notFound = [404, 'WEBHOOK_NOT_FOUND'];

const url = 'https://hooks.example.org/skilltrace?a=b';
const body = { url, event_types: ['mastery.reached', 'goal.reached'] };
const create = async (by: Caller, change: object = {}) =>
  (await ask(by, 'POST', list, { ...body, ...change })).json.data;

test('an endpoint is created, read, listed, changed and deleted', async () => {
  const by = await callerIn('whole');
  const created = await ask(by, 'POST', list, { ...body, description: 'Küche 🙂', more: 1 });
  assert.equal(created.status, 201);
  const { secret, ...shown } = created.json.data;
  const { webhook_id, created_at } = shown;
  assert.match(webhook_id, /^wh_[\w-]{16}$/);
  assert.equal(Buffer.from(secret.replace(/^whsec_/, ''), 'base64').length, 32);
  assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
  const rest = { description: 'Küche 🙂', enabled: true, disabled_reason: null };
  assert.deepEqual(shown, { webhook_id, ...body, ...rest, created_at });
  const read = async () => (await ask(by, 'GET', at(webhook_id))).json.data;
  assert.deepEqual(await read(), shown);
  assert.deepEqual((await ask(by, 'GET', list)).json.data, { webhooks: [shown], next_cursor: null });

  const change = { url: 'https://other.example.org', event_types: ['*'] };
  const changed = await ask(by, 'PATCH', at(webhook_id), { ...change, description: '', unknown: true });
  assert.deepEqual([changed.status, changed.json.data], [200, { ...shown, ...change, description: null }]);
  assert.deepEqual(await read(), changed.json.data);

  const deleted = await ask(by, 'DELETE', at(webhook_id));
  assert.deepEqual([deleted.status, deleted.json.data], [200, { webhook_id }]);
  for (const [method, more, sent] of [
    ...[['GET'], ['DELETE'], ['PATCH', '', {}], ['POST', '/rotate-secret'], ['POST', '/test']],
    ...[
      ['GET', '/deliveries'],
      ['POST', '/deliveries/msg_1/redeliver'],
    ],
  ] as [string, string?, object?][])
    assert.deepEqual(told(await ask(by, method, at(webhook_id, more), sent)), notFound, `${method} ${more}`);
});

test('PATCH leaves what it does not name, and null is as absent', async () => {
  const by = await callerIn('patched');
  const { secret: _, ...before } = await create(by, { description: 'kept' });
  const patch = async (change: unknown) => (await ask(by, 'PATCH', at(before.webhook_id), change)).json.data;
  const nothing = { url: null, event_types: null, description: null, enabled: null };
  for (const change of [{}, nothing, { secret: 'whsec_mine', webhook_id: 'mine' }])
    assert.deepEqual(await patch(change), before);
  const off = { ...before, enabled: false, disabled_reason: 'request' };
  assert.deepEqual(await patch({ enabled: false }), off);
  assert.deepEqual(await patch({ description: 'kept' }), off);
  assert.deepEqual(told(await ask(by, 'POST', at(before.webhook_id, '/test'))), [409, 'CONFLICT']);
  const again = at(before.webhook_id, '/deliveries/msg_1/redeliver');
  assert.deepEqual(told(await ask(by, 'POST', again)), [409, 'CONFLICT']);
  assert.deepEqual(await patch({ enabled: true }), before);
  assert.deepEqual(told(await ask(by, 'POST', again)), [404, 'NOT_FOUND']);
});

const misfits: readonly (readonly [object, string, RegExp])[] = [
  [{ url: undefined }, 'url', /required/],
  [{ url: null }, 'url', /string/],
  [{ url: `https://a.example/${'x'.repeat(2048)}` }, 'url', /2048/],
  [{ url: '/hooks' }, 'url', /absolute/],
  [{ url: 'https:hooks.example' }, 'url', /absolute/],
  [{ url: 'ftp://hooks.example' }, 'url', /absolute/],
  [{ url: 'https://' }, 'url', /absolute/],
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
  ].map((host) => [{ url: `https://${host}:8443/x` }, 'url', /not public/] as const),
  [{ event_types: undefined }, 'event_types', /required/],
  [{ event_types: [] }, 'event_types', /1/],
  [{ event_types: 'goal.reached' }, 'event_types', /array/],
  [{ event_types: ['goal.missed'] }, 'event_types/0', /one of/],
  [{ event_types: ['webhook.test'] }, 'event_types/0', /one of/],
  [{ event_types: ['goal.reached', 'goal.reached'] }, 'event_types', /duplicate/],
  [{ event_types: ['*', 'goal.reached'] }, 'event_types', /nothing beside/],
  [{ event_types: Array(50).fill('*') }, 'event_types', /7 items/],
  [{ description: 'x'.repeat(257) }, 'description', /256/],
  [{ description: 'a\tb' }, 'description', /control/],
  [{ description: 7 }, 'description', /string/],
];

test('what does not fit is refused by name, and nothing is made or changed', async () => {
  const by = await callerIn('misfits');
  const { secret: _, ...before } = await create(by);
  for (const [change, field, message] of misfits) {
    const isAbsent = Object.values(change).some((value) => value === undefined || value === null);
    for (const [method, path, sent] of [
      ['POST', list, { ...body, ...change }],
      ...(isAbsent ? [] : ([['PATCH', at(before.webhook_id), change]] as const)),
    ] as const) {
      const answer = await ask(by, method, path, sent);
      assert.deepEqual(told(answer), [400, 'INVALID_REQUEST'], JSON.stringify(sent));
      const [problem] = answer.json.error.details;
      assert.equal(problem.path, field, answer.text);
      assert.match(problem.message, message);
    }
  }
  const patched = await ask(by, 'PATCH', at(before.webhook_id), { enabled: 'yes' });
  assert.deepEqual(told(patched), [400, 'INVALID_REQUEST']);
  for (const sent of [[], 7, null])
    assert.deepEqual(told(await ask(by, 'POST', list, sent)), [400, 'INVALID_REQUEST']);
  assert.deepEqual((await ask(by, 'GET', list)).json.data.webhooks, [before]);
});

test('names are taken whatever they may stand for; with WEBHOOK_ALLOW_PRIVATE everything is', async (t) => {
  const by = await callerIn('places');
  for (const host of ['localhost', 'intranet.local', '8.8.8.8', '[2606:4700::1111]', 'пример.рф'])
    assert.equal((await create(by, { url: `https://${host}/` })).url, `https://${host}/`);
  const open = await startSecondApi(t, service, { webhookAllowPrivate: true });
  const there = await callerIn('open', open);
  for (const target of ['http://127.0.0.1:4000/hook', 'http://[::1]', 'https://10.0.0.1'])
    assert.equal((await create(there, { url: target })).url, target);
  const user = await ask(there, 'POST', list, { ...body, url: 'http://user@127.0.0.1' });
  assert.deepEqual(told(user), [400, 'INVALID_REQUEST']);
});

test('a tenant has ten at most, however many ask at once', async () => {
  const callers = [await callerIn('many'), await callerIn('many', second)];
  const [first] = callers as [Caller, Caller];
  const answers = await Promise.all(
    indices(30).map((i) => ask(callers[i % 2] as Caller, 'POST', list, body)),
  );
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 10);
  for (const answer of answers.filter(({ status }) => status !== 201))
    assert.deepEqual(told(answer), [422, 'LIMIT_EXCEEDED']);
  const ids = made.map(({ json }) => json.data.webhook_id);
  assert.equal((await ask(first, 'DELETE', at(ids[0]))).status, 200);
  assert.equal((await ask(first, 'POST', list, body)).status, 201);
  assert.deepEqual(told(await ask(first, 'POST', list, body)), [422, 'LIMIT_EXCEEDED']);
  // They have room for their own.
  assert.equal((await ask(await callerIn('others'), 'POST', list, body)).status, 201);
});

test('the list comes in pages, by id', async () => {
  const by = await callerIn('paged');
  const ids = [];
  for (const _ of indices(5)) ids.push((await create(by)).webhook_id);
  const seen = [];
  let cursor: string | null = '';
  for (; cursor !== null; ) {
    const query: string = cursor === '' ? '?limit=2' : `?limit=2&cursor=${cursor}`;
    const { data } = (await ask(by, 'GET', list + query)).json;
    seen.push(data.webhooks.map((one: { webhook_id: string }) => one.webhook_id));
    cursor = data.next_cursor;
  }
  const sorted = ids.sort();
  assert.deepEqual(seen, [sorted.slice(0, 2), sorted.slice(2, 4), sorted.slice(4)]);
  for (const query of ['?limit=0', '?limit=1001', '?cursor=made-up'])
    assert.deepEqual(told(await ask(by, 'GET', list + query)), [400, 'INVALID_REQUEST']);
  const deliveries = at(sorted[0], '/deliveries');
  assert.deepEqual(told(await ask(by, 'GET', `${deliveries}?cursor=made-up`)), [400, 'INVALID_REQUEST']);
});

test('another tenant neither sees nor changes an endpoint', async () => {
  const [by, other] = [await callerIn('mine'), await callerIn('yours')];
  const { secret, ...mine } = await create(by);
  for (const [method, more, sent] of [
    ['GET', '', undefined],
    ['PATCH', '', { enabled: false }],
    ['DELETE', '', undefined],
    ['POST', '/rotate-secret', { revoke_old: true }],
  ] as const)
    assert.deepEqual(told(await ask(other, method, at(mine.webhook_id, more), sent)), notFound);
  assert.deepEqual((await ask(other, 'GET', list)).json.data.webhooks, []);
  assert.deepEqual((await ask(by, 'GET', at(mine.webhook_id))).json.data, mine);
  assert.deepEqual(await secretsOf('mine', mine.webhook_id), [secret]);
});

const secretsOf = async (tenant: string, id: string) => (await store.find(keys.nameOf(tenant), id))?.secrets;

test('a secret is shown when it is made; the one before signs too, unless it is revoked', async () => {
  const by = await callerIn('secrets');
  const { webhook_id, secret: first, ...shown } = await create(by);
  const path = at(webhook_id, '/rotate-secret');
  const secrets = () => secretsOf('secrets', webhook_id);
  const rotate = async (sent?: unknown): Promise<string> => {
    const { status, json } = await ask(by, 'POST', path, sent);
    const { secret, ...rest } = json.data;
    assert.deepEqual([status, rest], [200, { webhook_id, ...shown }]);
    return secret;
  };
  const made = [await rotate(), await rotate({}), await rotate({ revoke_old: null })].reverse();
  assert.equal(new Set([...made, first]).size, 4);
  assert.deepEqual(await secrets(), [...made, first]);
  const alone = await rotate({ revoke_old: true });
  assert.deepEqual(await secrets(), [alone]);
  for (const answer of [await by.get(list), await by.get(at(webhook_id))])
    assert.doesNotMatch(answer.text, /whsec_/);
  const patched = await ask(by, 'PATCH', at(webhook_id), {});
  assert.doesNotMatch(patched.text, /whsec_/);

  for (const _ of indices(9)) await rotate({ revoke_old: false });
  assert.deepEqual(told(await ask(by, 'POST', path)), [422, 'LIMIT_EXCEEDED']);
  assert.equal((await secrets())?.length, 10);
  for (const sent of [{ revoke_old: 'yes' }, [], 'all'])
    assert.deepEqual(told(await ask(by, 'POST', path, sent)), [400, 'INVALID_REQUEST']);
});

test('a body that may be absent is a body where there is one', async () => {
  const by = await callerIn('bodies');
  const path = at((await create(by)).webhook_id, '/rotate-secret');
  const statuses = async (parts: RequestParts[]) => {
    const answers = [];
    for (const one of parts) answers.push((await by.raw({ path, ...one })).status);
    return answers;
  };
  const absent = { headers: { 'Content-Length': '0' } };
  const empty = { headers: { 'Content-Type': 'application/json', 'Content-Length': '0' } };
  const chunked = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'application/json' };
  const headers = { ...chunked, 'Content-Length': null };
  const none = { headers, body: '0\r\n\r\n' };
  const some = { headers, body: '2\r\n{}\r\n0\r\n\r\n' };
  const good = [{}, absent, empty, none, some];
  assert.deepEqual(await statuses(good), [200, 200, 200, 200, 200]);
  const untyped = { headers: { 'Content-Type': null }, body: '{}' };
  const text = { headers: { 'Content-Type': 'text/plain' }, body: '{}' };
  const typed = { headers: { 'Content-Type': 'text/plain' } };
  assert.deepEqual(await statuses([untyped, text, typed]), [415, 415, 415]);
  assert.deepEqual(await statuses([{ body: '{' }, { body: `"${'x'.repeat(17_000)}"` }]), [400, 413]);
});

test('types that can be asked for are those of the contract', () => {
  assert.equal(subscribableTypes.length, 7);
  assert.ok(!subscribableTypes.includes('webhook.test'));
});
