/** API keys made, seen, changed and revoked over the API: nobody gives, sees or ends more than the own key reaches. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { allScopes, hashKey, type Scope, toKeyId } from '../../src/contracts/access/access.js';
import { createFactsHistory } from '../../src/warehouse/reads/facts-history.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const second = await service.second();
const keys = await keysOf({ after }, service);
const path = '/api/v1/keys';
const idOf = (key: string): string => toKeyId(hashKey(key));

interface Holder {
  readonly tenant?: string;
  readonly scopes?: readonly Scope[];
  readonly quota?: number;
}

async function holder({ tenant = 'school', ...rest }: Holder = {}) {
  const key = await keys.add({ tenant, ...rest });
  const caller = callerOf(service, key);
  const send = async (method: string, to: string, body?: object) => {
    const parts = body === undefined ? {} : { body: JSON.stringify(body) };
    const { status, json } = await caller.call({ method, path: to, ...parts });
    return { status, data: json.data, error: json.error };
  };
  return {
    ...{ key, id: idOf(key), tenant: keys.nameOf(tenant) },
    list: async (query = '') => (await caller.get(`${path}${query}`)).json,
    own: async () => (await caller.get('/api/v1/key')).json.data,
    make: (body: object) => send('POST', path, body),
    change: (id: string, body: object) => send('PATCH', `${path}/${id}`, body),
    revoke: (id: string) => send('DELETE', `${path}/${id}`),
  };
}

const codeOf = async (call: Promise<{ status: number; error?: { code: string } }>) => {
  const { status, error } = await call;
  return [status, error?.code];
};

test('any key says what it may do, whatever its scopes', async () => {
  for (const scope of allScopes) {
    const { own, id, tenant } = await holder({ scopes: [scope], quota: 9 });
    const { created_at, ...rest } = await own();
    assert.deepEqual(rest, {
      ...{ key_id: id, tenant, scopes: [scope], requests_per_minute: 9, development: false },
    });
    assert.ok(Date.parse(created_at) <= Date.now());
  }
});

test('a key that is made works everywhere, until it is revoked, which stays so', async () => {
  const admin = await holder({ tenant: 'life' });
  const { status, data } = await admin.make({ scopes: ['write', 'read'] });
  const { key, ...made } = data;
  assert.equal(status, 201);
  assert.match(key, /^sk-[\w-]{32}$/);
  assert.deepEqual(
    [made.key_id, made.scopes, made.requests_per_minute, made.revoked_at],
    [idOf(key), ['read', 'write'], 100, null],
  );
  const statuses = () =>
    Promise.all([service, second].map(async (at) => (await callerOf(at, key).get('/api/v1/skills')).status));
  assert.deepEqual(await statuses(), [200, 200]);
  assert.equal((await callerOf(service, key).get(path)).status, 403);
  const listed = (await admin.list()).data.keys;
  assert.deepEqual(listed[0], made, 'newest first, without the key');

  const ended = await admin.revoke(made.key_id);
  assert.equal(ended.status, 200);
  await waitFor('refusal', async () => (await statuses()).every((one) => one === 401));
  assert.deepEqual((await admin.list()).data.keys[0], ended.data);
  assert.deepEqual(ended.data, { ...made, revoked_at: ended.data.revoked_at });
  assert.deepEqual((await admin.revoke(made.key_id)).data, ended.data, 'once more changes nothing');
  assert.deepEqual(await codeOf(admin.change(made.key_id, { requests_per_minute: 5 })), [409, 'CONFLICT']);
  assert.equal(await keys.store.findActive(hashKey(key)), null);
});

test('ClickHouse is told, as of keys of the command', async (t) => {
  const admin = await holder({ tenant: 'told' });
  const [kept, ended] = [(await admin.make({})).data, (await admin.make({})).data];
  await admin.change(kept.key_id, { requests_per_minute: 7 });
  await admin.revoke(ended.key_id);
  const history = createFactsHistory(clickhouseOf(t, service), service.clickhouseUrl);
  const stored = (await keys.store.all()).filter(({ tenant }) => tenant === admin.tenant);
  await waitFor('what a rebuild reads to be what is in store', async () => {
    const found = (await history.fetchKeys()).keys.filter(({ tenant }) => tenant === admin.tenant);
    return isDeepStrictEqual(new Set(found), new Set(stored));
  });
  assert.deepEqual(
    stored.map(({ requestsPerMinute, revokedAt }) => [requestsPerMinute, revokedAt !== null]),
    [
      [null, false],
      [7, false],
      [100, true],
    ],
  );
});

test('a quota that is changed takes effect', async () => {
  const admin = await holder({ tenant: 'quotas' });
  const { data } = await admin.make({ scopes: ['read'], unlimited: true });
  assert.equal(data.requests_per_minute, null);
  const policy = async () =>
    (await callerOf(service, data.key).get('/api/v1/key')).headers['ratelimit-policy'];
  assert.equal(await policy(), undefined);
  const changed = await admin.change(data.key_id, { requests_per_minute: 77 });
  assert.deepEqual([changed.status, changed.data.requests_per_minute], [200, 77]);
  await waitFor('the quota', async () => (await policy()) === '"default";q=77;w=60');
  assert.equal((await admin.change(data.key_id, { unlimited: true })).data.requests_per_minute, null);
});

test('no key gives more than it has', async () => {
  const admin = await holder({ tenant: 'bounded', scopes: ['read', 'admin'], quota: 60 });
  const { data } = await admin.make({});
  assert.deepEqual([data.scopes, data.requests_per_minute], [['read', 'admin'], 60]);
  const refused: object[] = [
    { scopes: ['write'] },
    { scopes: ['read', 'operator'] },
    { requests_per_minute: 61 },
    { unlimited: true },
    { tenant: 'another' },
  ];
  for (const body of refused) assert.deepEqual(await codeOf(admin.make(body)), [403, 'FORBIDDEN']);
  for (const body of [{ requests_per_minute: 61 }, { unlimited: true }])
    assert.deepEqual(await codeOf(admin.change(data.key_id, body)), [403, 'FORBIDDEN']);
  assert.equal((await admin.make({ tenant: admin.tenant, requests_per_minute: 60 })).status, 201);
  const writer = await holder({ tenant: 'bounded', scopes: ['write'] });
  assert.deepEqual(await codeOf(admin.change(writer.id, { requests_per_minute: 1 })), [403, 'FORBIDDEN']);
  assert.deepEqual(await codeOf(admin.revoke(writer.id)), [403, 'FORBIDDEN']);
  assert.equal((await writer.own()).requests_per_minute, null);
});

test("another tenant's keys are neither seen nor touched", async () => {
  const [admin, other] = [await holder({ tenant: 'here' }), await holder({ tenant: 'there' })];
  const { data } = await admin.list();
  assert.deepEqual(
    data.keys.map(({ key_id }: { key_id: string }) => key_id),
    [admin.id],
  );
  assert.equal((await admin.list(`?tenant=${other.tenant}`)).error.code, 'FORBIDDEN');
  assert.equal((await admin.list(`?tenant=${admin.tenant}`)).data.keys.length, 1);
  for (const id of [other.id, '0123456789ab']) {
    assert.deepEqual(await codeOf(admin.revoke(id)), [404, 'NOT_FOUND']);
    assert.deepEqual(await codeOf(admin.change(id, { requests_per_minute: 1 })), [404, 'NOT_FOUND']);
  }
  assert.equal((await other.own()).requests_per_minute, null);
});

test('operators reach every tenant, with any quota, but give no scope that they lack', async () => {
  const operator = await holder({ tenant: 'office', scopes: ['read', 'operator'], quota: 500 });
  const school = await holder({ tenant: 'led' });
  const made = await operator.make({ tenant: school.tenant, scopes: ['read'], unlimited: true });
  assert.deepEqual([made.status, made.data.tenant], [201, school.tenant]);
  assert.deepEqual(await codeOf(operator.make({ scopes: ['write'] })), [403, 'FORBIDDEN']);
  const { keys: seen } = (await operator.list(`?tenant=${school.tenant}`)).data;
  assert.deepEqual(
    seen.map(({ key_id }: { key_id: string }) => key_id),
    [made.data.key_id, school.id],
  );
  const all = (await operator.list('?limit=1000')).data.keys;
  assert.ok(new Set(all.map(({ tenant }: { tenant: string }) => tenant)).size > 1);
  assert.equal((await operator.change(school.id, { requests_per_minute: 1000 })).status, 200);
  assert.equal((await operator.revoke(school.id)).status, 200);
  const bare = await holder({ tenant: 'office', scopes: ['operator'] });
  assert.deepEqual(await codeOf(bare.make({})), [400, 'INVALID_REQUEST'], 'operator is given by name only');
  assert.equal((await bare.make({ scopes: ['operator'] })).status, 201);
});

test('what was taken from a key a moment ago can neither be kept nor won back by it', async () => {
  const [admin, lowered] = [await holder({ tenant: 'taken' }), await holder({ tenant: 'taken' })];
  assert.equal((await lowered.own()).requests_per_minute, null);
  await admin.change(lowered.id, { requests_per_minute: 50 });
  assert.deepEqual(await codeOf(lowered.change(lowered.id, { unlimited: true })), [403, 'FORBIDDEN']);
  await admin.revoke(lowered.id);
  const late = [
    lowered.make({}),
    lowered.change(admin.id, { requests_per_minute: 1 }),
    lowered.revoke(admin.id),
  ];
  for (const call of late) assert.deepEqual(await codeOf(call), [401, 'UNAUTHORIZED']);
  assert.equal((await admin.list()).data.keys.length, 2);
});

test('a key may revoke itself, and hears of it', async () => {
  const admin = await holder({ tenant: 'leaving' });
  const { status, data } = await admin.revoke(admin.id);
  assert.deepEqual([status, data.key_id], [200, admin.id]);
  await waitFor('refusal', async () => (await callerOf(service, admin.key).get(path)).status === 401);
});

test('pages have every key once, newest first', async () => {
  const admin = await holder({ tenant: 'paged' });
  for (let i = 0; i < 4; i++) await admin.make({});
  const whole = (await admin.list()).data.keys;
  assert.equal(whole.length, 5);
  const times = whole.map(({ created_at }: { created_at: string }) => created_at);
  assert.deepEqual(times, times.toSorted().reverse());
  const paged: object[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { data } = await admin.list(`?limit=2${cursor && `&cursor=${cursor}`}`);
    assert.ok(data.keys.length <= 2);
    paged.push(...data.keys);
    cursor = data.next_cursor;
  }
  assert.deepEqual(paged, whole);
  assert.equal((await admin.list('?cursor=made-up')).error.code, 'INVALID_REQUEST');
});

test('bodies that do not fit are refused', async () => {
  const admin = await holder({ tenant: 'misfits' });
  const wrong: object[] = [
    { scopes: [] },
    { scopes: ['root'] },
    { scopes: ['read', 'read'] },
    { requests_per_minute: 0 },
    { requests_per_minute: 1.5 },
    { requests_per_minute: 10, unlimited: true },
    { tenant: 'a b' },
  ];
  for (const body of wrong) assert.deepEqual(await codeOf(admin.make(body)), [400, 'INVALID_REQUEST']);
  for (const body of [{}, { requests_per_minute: null }, { unlimited: false }])
    assert.deepEqual(await codeOf(admin.change(admin.id, body)), [400, 'INVALID_REQUEST']);
  const nulls = { scopes: null, requests_per_minute: null, unlimited: null, tenant: null };
  assert.equal((await admin.make(nulls)).data.requests_per_minute, 100, 'null equals absence');
});

test('a tenant has no more than 1,000 keys, revoked ones included, but for operators', async () => {
  const admin = await holder({ tenant: 'full' });
  const grant = { tenant: admin.tenant, scopes: ['read'], requestsPerMinute: 1, development: false } as const;
  await Promise.all(
    Array.from({ length: 999 }, async (_, i) => {
      await keys.store.save({ ...grant, keyHash: hashKey(`full-${i}`) });
      if (i % 2) await keys.store.revoke(hashKey(`full-${i}`));
    }),
  );
  assert.deepEqual(await codeOf(admin.make({})), [422, 'LIMIT_EXCEEDED']);
  const operator = await holder({ tenant: 'full', scopes: allScopes });
  assert.equal((await operator.make({})).status, 201);
  const all = await keys.store.all();
  assert.equal(new Set(all.map(({ keyHash }) => keyHash)).size, all.length, 'of many pages each once');
  const times = all.map(({ createdAt }) => createdAt);
  assert.deepEqual(times, times.toSorted());
});
