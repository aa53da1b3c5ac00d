/** GET /api/v1/activity: successful changes, who made them, and who may read them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allScopes, hashKey, type Scope, toKeyId } from '../../src/contracts/access/access.js';
import { createActivityStore } from '../../src/store/operations/activity-store.js';
import { activityKey } from '../../src/store/redis/keys.js';
import { callerOf, event } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);

async function createHolder(tenant: string, scopes: readonly Scope[]) {
  const key = await keys.add({ tenant, scopes });
  const caller = callerOf(service, key);
  const list = async (query = '') => {
    const { status, json } = await caller.get(`/api/v1/activity${query}`);
    return { status, data: json.data };
  };
  return { caller, id: toKeyId(hashKey(key)), tenant: keys.nameOf(tenant), list };
}

test('The activity log lists successful changes with key, action and target, newest first', async () => {
  const { caller, id, tenant, list } = await createHolder('changes', ['read', 'write', 'admin']);
  const send = async (method: string, path: string, body?: object) =>
    (await caller.send(method, `/api/v1${path}`, body)).json.data;
  const { key_id } = await send('POST', '/keys', { name: 'Reports' });
  await send('PATCH', `/keys/${key_id}`, { note: 'School 1' });
  await send('PATCH', `/keys/${key_id}`, {});
  const { webhook_id } = await send('POST', '/webhooks', {
    url: 'https://a.example.org/',
    event_types: ['*'],
  });
  await send('POST', `/webhooks/${webhook_id}/rotate-secret`);
  await send('DELETE', `/webhooks/${webhook_id}`);
  await send('DELETE', `/webhooks/${webhook_id}`);
  await send('PUT', '/skills/algebra', { name: 'Algebra' });
  assert.equal((await caller.track(event({ user_id: 'ada-the-learner' }))).status, 200);
  const { erasure_id } = await send('DELETE', '/learners/ada-the-learner');
  await send('DELETE', `/keys/${key_id}`);
  const { status, data } = await list();
  assert.equal(status, 200);
  const shown = data.entries.map(({ action, target }: Record<string, string>) => [action, target]);
  assert.deepEqual(shown, [
    ['key.revoked', key_id],
    ['erasure.started', erasure_id],
    ['skill.saved', 'algebra'],
    ['webhook.deleted', webhook_id],
    ['webhook.secret_rotated', webhook_id],
    ['webhook.created', webhook_id],
    ['key.changed', key_id],
    ['key.created', key_id],
  ]);
  for (const entry of data.entries)
    assert.deepEqual([entry.tenant, entry.key_id, entry.key_name], [tenant, id, null]);
  const stored = await redis.xrange(activityKey(tenant), '-', '+');
  assert.doesNotMatch(JSON.stringify(stored), /ada-the-learner/);
});

test('Changes of groups are logged, without the members', async () => {
  const { caller, list } = await createHolder('groups', ['write', 'admin']);
  const path = '/api/v1/groups/7a';
  await caller.send('PUT', path, { name: 'Class 7a', user_ids: ['ada-the-learner'] });
  await caller.send('POST', `${path}/members`, { add: ['bob-the-learner'] });
  await caller.send('DELETE', path);
  const { entries } = (await list()).data;
  const actions = ['group.deleted', 'group.members_changed', 'group.saved'];
  assert.deepEqual(valuesOf(entries, 'action'), actions);
  assert.deepEqual(valuesOf(entries, 'target'), ['7a', '7a', '7a']);
  assert.doesNotMatch(JSON.stringify(entries), /-the-learner/);
});

test('An entry has the name of the key, and belongs to the tenant of the changed key', async () => {
  const admin = await createHolder('owner', ['read', 'admin']);
  const operator = await createHolder('office', allScopes);
  const named = (
    await operator.caller.send('POST', '/api/v1/keys', { name: 'Office', scopes: ['read', 'operator'] })
  ).json.data;
  const made = await callerOf(service, named.key).send('POST', '/api/v1/keys', {
    ...{ tenant: admin.tenant, scopes: ['read'] },
  });
  const [entry] = (await admin.list()).data.entries;
  assert.deepEqual(
    [entry.action, entry.target, entry.key_name],
    ['key.created', made.json.data.key_id, 'Office'],
  );
});

test('Admins read the entries of their tenant, operators of all tenants, in pages', async () => {
  const [one, other] = [await createHolder('one', ['admin']), await createHolder('other', ['admin'])];
  for (const { caller } of [one, other, one]) await caller.send('PUT', '/api/v1/skills/s', { name: 'S' });
  const { entries } = (await one.list()).data;
  assert.deepEqual(valuesOf(entries, 'tenant'), [one.tenant, one.tenant]);
  const operator = await createHolder('office', ['operator']);
  const all = (await operator.list('?limit=3')).data.entries;
  assert.deepEqual(valuesOf(all, 'tenant'), [one.tenant, other.tenant, one.tenant]);
  const pages = await readPages<object>((query) => one.caller.get(`/api/v1/activity${query}`), 'entries', 1);
  assert.deepEqual(pages.flat(), entries);
  assert.equal((await one.list('?cursor=x')).status, 400);
  const reader = await createHolder('one', ['read', 'write']);
  assert.equal((await reader.list()).status, 403);
});

test('The activity log keeps about the last 10,000 entries', async () => {
  const { append, list } = createActivityStore(redis);
  const tenant = keys.nameOf('busy');
  const entry = { tenant, keyId: '0123456789ab', keyName: null, action: 'skill.saved' } as const;
  const earlier = redis.pipeline();
  for (let i = 0; i < 10_500; i++)
    earlier.xadd(activityKey(tenant), '*', 'a', JSON.stringify({ ...entry, target: `s${i}` }));
  await earlier.exec();
  await append({ ...entry, target: 'last' });
  const length = await redis.xlen(activityKey(tenant));
  assert.ok(length >= 10_000 && length < 10_200, `${length} entries`);
  assert.equal((await list(tenant, null, 1))[0]?.target, 'last');
  const { caller } = await createHolder('busy', ['admin']);
  const pages = await readPages<object>((query) => caller.get(`/api/v1/activity${query}`), 'entries', 1000);
  assert.equal(pages.flat().length, length);
});
