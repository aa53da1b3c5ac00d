/** API keys over HTTP: create, list, change and revoke, never beyond the rights of the calling key. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { allScopes, hashKey, type Scope, toKeyId } from '../../src/contracts/access/access.js';
import { createFactsHistory } from '../../src/warehouse/reads/facts-history.js';
import { callerOf, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const second = await service.second();
const keys = await keysOf({ after }, service);
const path = '/api/v1/keys';
/** The contract's limit. */
const revocationMs = 5000;
const idOf = (key: string): string => toKeyId(hashKey(key));

interface KeyGrant {
  readonly tenant?: string;
  readonly scopes?: readonly Scope[];
  readonly quota?: number;
}

/** A new key and the calls that it makes. */
async function createHolder({ tenant = 'school', ...rest }: KeyGrant = {}) {
  const key = await keys.add({ tenant, ...rest });
  const caller = callerOf(service, key);
  const send = async (method: string, to: string, body?: object) => {
    const answer = await caller.send(method, to, body);
    return { ...answer, data: answer.json.data };
  };
  return {
    ...{ key, id: idOf(key), tenant: keys.nameOf(tenant) },
    list: (query = '') => send('GET', `${path}${query}`),
    self: async () => (await send('GET', '/api/v1/key')).data,
    create: (body: object) => send('POST', path, body),
    change: (id: string, body: object) => send('PATCH', `${path}/${id}`, body),
    revoke: (id: string) => send('DELETE', `${path}/${id}`),
  };
}

const forbidden = '403 FORBIDDEN';
const invalid = '400 INVALID_REQUEST';
const notFound = '404 NOT_FOUND';

const assertOutcome = async (call: Promise<JsonAnswer>, expected: string, message?: string): Promise<void> =>
  assert.equal(outcomeOf(await call), expected, message);

test('GET /key returns tenant, scopes and quota to a key with any scope', async () => {
  for (const scope of allScopes) {
    const { self, id, tenant } = await createHolder({ scopes: [scope], quota: 9 });
    const { created_at, ...rest } = await self();
    assert.deepEqual(rest, {
      ...{ key_id: id, tenant, scopes: [scope], requests_per_minute: 9, development: false },
      ...{ name: null, note: null, time_zone: 'UTC' },
    });
    assert.ok(Date.parse(created_at) <= Date.now());
  }
});

test('POST /keys creates a key that works in all processes until DELETE /keys/{key_id} revokes it', async () => {
  const admin = await createHolder({ tenant: 'life' });
  const { status, data } = await admin.create({ scopes: ['write', 'read'] });
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
  assert.deepEqual(listed[0], made, 'the new key is not the first, or is shown');

  const ended = await admin.revoke(made.key_id);
  assert.equal(ended.status, 200);
  await waitFor('the revocation', async () => (await statuses()).every((one) => one === 401), revocationMs);
  assert.deepEqual((await admin.list()).data.keys[0], ended.data);
  assert.deepEqual(ended.data, { ...made, revoked_at: ended.data.revoked_at });
  assert.deepEqual((await admin.revoke(made.key_id)).data, ended.data, 'a second revocation changes the key');
  await assertOutcome(admin.change(made.key_id, { requests_per_minute: 5 }), '409 CONFLICT');
  assert.equal(await keys.store.findActive(hashKey(key)), null);
});

test('POST, PATCH and DELETE /keys write the journal from which a rebuild reads the keys', async (t) => {
  const admin = await createHolder({ tenant: 'journal' });
  const [kept, ended] = [(await admin.create({})).data, (await admin.create({})).data];
  await admin.change(kept.key_id, { requests_per_minute: 7 });
  await admin.revoke(ended.key_id);
  const history = createFactsHistory(clickhouseOf(t, service), service.clickhouseUrl);
  const stored = (await keys.store.all()).filter(({ tenant }) => tenant === admin.tenant);
  await waitFor('the keys in ClickHouse', async () => {
    const found = (await history.fetchKeys()).keys.filter(({ tenant }) => tenant === admin.tenant);
    return isDeepStrictEqual(new Set(found), new Set(stored));
  });
  const states = stored.map(
    ({ requestsPerMinute, revokedAt }) => `${requestsPerMinute} ${revokedAt !== null}`,
  );
  assert.deepEqual(states, ['null false', '7 false', '100 true']);
});

test('PATCH /keys/{key_id} changes the quota of running requests', async () => {
  const admin = await createHolder({ tenant: 'quotas' });
  const { data } = await admin.create({ scopes: ['read'], unlimited: true });
  assert.equal(data.requests_per_minute, null);
  const policy = async () =>
    (await callerOf(service, data.key).get('/api/v1/key')).headers['ratelimit-policy'];
  assert.equal(await policy(), undefined);
  const changed = await admin.change(data.key_id, { requests_per_minute: 77 });
  assert.deepEqual([changed.status, changed.data.requests_per_minute], [200, 77]);
  await waitFor('the quota', async () => (await policy()) === '"default";q=77;w=60');
  assert.equal((await admin.change(data.key_id, { unlimited: true })).data.requests_per_minute, null);
});

test('POST and PATCH /keys grant at most the rights of the calling key', async () => {
  const admin = await createHolder({ tenant: 'bounded', scopes: ['read', 'admin'], quota: 60 });
  const { data } = await admin.create({});
  assert.deepEqual([data.scopes, data.requests_per_minute], [['read', 'admin'], 60]);
  const quotas: object[] = [{ requests_per_minute: 61 }, { unlimited: true }];
  const others: object[] = [{ scopes: ['write'] }, { scopes: ['read', 'operator'] }, { tenant: 'another' }];
  for (const body of [...quotas, ...others]) await assertOutcome(admin.create(body), forbidden);
  for (const body of quotas) await assertOutcome(admin.change(data.key_id, body), forbidden);
  assert.equal((await admin.create({ tenant: admin.tenant, requests_per_minute: 60 })).status, 201);
  const writer = await createHolder({ tenant: 'bounded', scopes: ['write'] });
  await assertOutcome(admin.change(writer.id, { requests_per_minute: 1 }), forbidden);
  await assertOutcome(admin.revoke(writer.id), forbidden);
  assert.equal((await writer.self()).requests_per_minute, null);
});

test('The key endpoints show and change only keys of the calling tenant', async () => {
  const [admin, other] = [await createHolder({ tenant: 'here' }), await createHolder({ tenant: 'there' })];
  const { data } = await admin.list();
  assert.deepEqual(valuesOf(data.keys, 'key_id'), [admin.id]);
  await assertOutcome(admin.list(`?tenant=${other.tenant}`), forbidden);
  assert.equal((await admin.list(`?tenant=${admin.tenant}`)).data.keys.length, 1);
  for (const id of [other.id, '0123456789ab']) {
    await assertOutcome(admin.revoke(id), notFound);
    await assertOutcome(admin.change(id, { requests_per_minute: 1 }), notFound);
  }
  assert.equal((await other.self()).requests_per_minute, null);
});

test('The scope operator reaches keys of all tenants, but grants only scopes of the calling key', async () => {
  const operator = await createHolder({ tenant: 'office', scopes: ['read', 'operator'], quota: 500 });
  const school = await createHolder({ tenant: 'led' });
  const made = await operator.create({ tenant: school.tenant, scopes: ['read'], unlimited: true });
  assert.deepEqual([made.status, made.data.tenant], [201, school.tenant]);
  await assertOutcome(operator.create({ scopes: ['write'] }), forbidden);
  const { keys: seen } = (await operator.list(`?tenant=${school.tenant}`)).data;
  assert.deepEqual(valuesOf(seen, 'key_id'), [made.data.key_id, school.id]);
  const all = (await operator.list('?limit=1000')).data.keys;
  assert.ok(new Set(valuesOf(all, 'tenant')).size > 1);
  assert.equal((await operator.change(school.id, { requests_per_minute: 1000 })).status, 200);
  assert.equal((await operator.revoke(school.id)).status, 200);
  const bare = await createHolder({ tenant: 'office', scopes: ['operator'] });
  await assertOutcome(bare.create({}), invalid, 'operator is granted without its name');
  assert.equal((await bare.create({ scopes: ['operator'] })).status, 201);
});

test('A key that was lowered or revoked cannot use its cached rights to change keys', async () => {
  const admin = await createHolder({ tenant: 'lowered' });
  const lowered = await createHolder({ tenant: 'lowered' });
  assert.equal((await lowered.self()).requests_per_minute, null);
  await admin.change(lowered.id, { requests_per_minute: 50 });
  await assertOutcome(lowered.change(lowered.id, { unlimited: true }), forbidden);
  await admin.revoke(lowered.id);
  const late = [
    lowered.create({}),
    lowered.change(admin.id, { requests_per_minute: 1 }),
    lowered.revoke(admin.id),
  ];
  for (const call of late) await assertOutcome(call, '401 UNAUTHORIZED');
  assert.equal((await admin.list()).data.keys.length, 2);
});

test('DELETE /keys/{key_id} responds to a key that revokes itself', async () => {
  const admin = await createHolder({ tenant: 'leaving' });
  const { status, data } = await admin.revoke(admin.id);
  assert.deepEqual([status, data.key_id], [200, admin.id]);
  const isRevoked = async () => (await admin.list()).status === 401;
  await waitFor('the revocation', isRevoked, revocationMs);
});

test('GET /keys returns each key once in pages, newest first', async () => {
  const admin = await createHolder({ tenant: 'paged' });
  for (let i = 0; i < 4; i++) await admin.create({});
  const whole = (await admin.list()).data.keys;
  assert.equal(whole.length, 5);
  const times: string[] = valuesOf(whole, 'created_at');
  assert.deepEqual(times, times.toSorted().reverse());
  const pages = await readPages<object>(admin.list, 'keys', 2);
  assert.deepEqual(valuesOf(pages, 'length'), [2, 2, 1]);
  assert.deepEqual(pages.flat(), whole);
});

test('POST and PATCH /keys reject invalid values and treat null as absent', async () => {
  const admin = await createHolder({ tenant: 'invalid' });
  const wrong: object[] = [
    ...[{ scopes: [] }, { scopes: ['root'] }, { scopes: ['read', 'read'] }, { tenant: 'a b' }],
    ...[{ requests_per_minute: 0 }, { requests_per_minute: 1.5 }],
    { requests_per_minute: 10, unlimited: true },
  ];
  for (const body of wrong) await assertOutcome(admin.create(body), invalid);
  for (const body of [{}, { requests_per_minute: null }, { unlimited: false }])
    await assertOutcome(admin.change(admin.id, body), invalid);
  const nulls = { scopes: null, requests_per_minute: null, unlimited: null, tenant: null };
  assert.equal((await admin.create(nulls)).data.requests_per_minute, 100);
});

test('POST /keys creates at most 1,000 keys per tenant, including revoked ones, except for operators', async () => {
  const admin = await createHolder({ tenant: 'full' });
  const grant = { tenant: admin.tenant, scopes: ['read'], requestsPerMinute: 1, development: false } as const;
  await Promise.all(
    Array.from({ length: 999 }, async (_, i) => {
      await keys.store.save({ ...grant, keyHash: hashKey(`full-${i}`) });
      if (i % 2) await keys.store.revoke(hashKey(`full-${i}`));
    }),
  );
  await assertOutcome(admin.create({}), '422 LIMIT_EXCEEDED');
  const operator = await createHolder({ tenant: 'full', scopes: allScopes });
  assert.equal((await operator.create({})).status, 201);
  const all = await keys.store.all();
  assert.equal(new Set(all.map(({ keyHash }) => keyHash)).size, all.length);
  const times = all.map(({ createdAt }) => createdAt);
  assert.deepEqual(times, times.toSorted());
});

test('POST and PATCH /keys set a name and a note, which are text, and null or a missing field keeps them', async () => {
  const admin = await createHolder({ tenant: 'named' });
  const name = '<script>alert(1)</script>';
  const { data } = await admin.create({ name, note: 'Nightly export' });
  assert.deepEqual([data.name, data.note, data.last_used_at], [name, 'Nightly export', null]);
  const changed = await admin.change(data.key_id, { note: '', name: null });
  assert.deepEqual([changed.data.name, changed.data.note], [name, null]);
  assert.equal(changed.data.requests_per_minute, data.requests_per_minute);
  const self = callerOf(service, data.key);
  assert.equal((await self.get('/api/v1/key')).json.data.name, name);
  for (const body of [{ name: 'x'.repeat(65) }, { note: 'x'.repeat(257) }, { name: 'a\u0000' }, { name: 7 }])
    await assertOutcome(admin.change(data.key_id, body), invalid);
});

test('ClickHouse stores the name and the note of a key for a rebuild', async (t) => {
  const admin = await createHolder({ tenant: 'stored' });
  const { data } = await admin.create({ name: 'Reports', note: 'School 1' });
  const history = createFactsHistory(clickhouseOf(t, service), service.clickhouseUrl);
  const find = async () =>
    (await history.fetchKeys()).keys.find(({ keyHash }) => keyHash === hashKey(data.key));
  await waitFor('the key in ClickHouse', async () => (await find()) !== undefined);
  assert.deepEqual(await find(), await keys.store.get(hashKey(data.key)));
});
