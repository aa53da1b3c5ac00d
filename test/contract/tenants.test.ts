/** Two tenants with the same ids call every route: no tenant reads or changes data of the other. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Route } from '../../src/http/route.js';
import { indices } from '../../src/lists.js';
import { erasuresKey } from '../../src/store/redis/keys.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { type Answer, type Caller, callerOf } from '../support/http/http.js';
import { type Ids, routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { timeZoneChanged } from '../support/time-zone-changed.js';
import { waitFor, waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);

interface Tenant {
  readonly name: string;
  /** Part of names and ids of this tenant only. */
  readonly marker: string;
  readonly key: string;
  readonly caller: Caller;
  /** Matches a response that contains answers of the other tenant: red's are all right, blue's all wrong. */
  readonly mixed: RegExp;
}
async function createTenant(name: string, marker: string, mixed: RegExp): Promise<Tenant> {
  const key = await keys.add({ tenant: name });
  return { name: keys.nameOf(name), marker, key, caller: callerOf(service, key), mixed };
}
const red = await createTenant('red', 'crimson', /"is_correct":false|"accuracy_28d":0/);
const blue = await createTenant('blue', 'azure', /"is_correct":true|"correct":[1-9]/);

const erasureId = '1-00000000-0000-4000-8000-000000000000';
const sharedIds: Ids = {
  ...{ userId: 'user-of-both', skillId: 'skill-of-both', eventId: 'event-of-both', erasureId },
  webhookId: 'wh_of-both',
};
const redIds: Ids = {
  ...{ userId: 'own-1', skillId: 'own-2', eventId: 'own-3', erasureId },
  webhookId: await createWebhook(red),
};
const unknownIds: Ids = {
  ...{ userId: 'no-1', skillId: 'no-2', eventId: 'no-3', erasureId, webhookId: 'wh_no-4' },
};

async function createWebhook({ caller, marker }: Tenant): Promise<string> {
  const body = { url: `https://${marker}.example.org/`, event_types: ['*'], description: `${marker} hook` };
  const { status, json } = await caller.send('POST', '/api/v1/webhooks', body);
  assert.equal(status, 201);
  return json.data.webhook_id;
}

async function fill({ caller, marker }: Tenant, ids: Ids, isCorrect: boolean): Promise<void> {
  const answer = { user_id: ids.userId, is_correct: isCorrect };
  const put = (path: string, body: object) => caller.send('PUT', `/api/v1/${path}`, body);
  const answers = [
    await caller.track({ ...answer, skill_id: ids.skillId, event_id: ids.eventId }),
    await caller.track({ ...answer, skill_id: ids.skillId, item_id: `${marker}-item` }),
    await caller.track({ ...answer, skill_id: `${marker}-skill` }),
    await put(`goals/${ids.userId}`, { target_score: isCorrect ? 1500 : 800 }),
    await put(`skills/${ids.skillId}`, { name: `${marker} name`, section: 'math' }),
  ];
  for (const { status, text } of answers) assert.equal(status, 200, text);
}
await fill(red, sharedIds, true);
await fill(red, redIds, true);
await fill(blue, sharedIds, false);
await waitUntilStored(callerOf(service, null));

/** Deletions come last, so that the other calls find something. */
const order: readonly Route['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const routes = [...routeTable].sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
/** The scope operator reaches all tenants. */
const tenantRoutes = routes.filter(({ scope }) => scope !== null && scope !== 'operator');

function call(caller: Caller, route: Route, ids: Ids): Promise<Answer> {
  const parts = routeRequests[nameOf(route)];
  assert.ok(parts !== undefined, `test/support/http/route-requests.ts lacks ${nameOf(route)}`);
  return askInTurn(() => caller.raw({ method: route.method, ...parts(ids) }));
}

/** Everything by which a caller can distinguish responses, without times, versions, random and requested ids. */
function normalize({ status, headers, text }: Answer, ids: Ids): string {
  const { 'x-request-id': _, date: __, etag: ___, 'content-length': ____, ...others } = headers;
  let all = JSON.stringify([status, others, text])
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\d+-[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ERASURE')
    .replace(/whsec_[\w+/=]+/g, 'SECRET')
    // Expected accuracy changes with each second since the last answer.
    .replace(/((?:expected_\w+|p_correct)\\":)(?:\{[^}]*\}|[\d.]+)/g, '$1EXPECTED')
    .replace(/\d+% chance/g, 'EXPECTED chance');
  // The id of the new webhook or key.
  if (status === 201) all = all.replace(/(wh_|sk-|key_id\\":\\")[\w-]+/g, 'CREATED');
  for (const [name, id] of Object.entries(ids)) all = all.replaceAll(id, name);
  return all;
}
const fullText = ({ headers, text }: Answer): string => JSON.stringify(headers) + text;

/** Redis keys of a tenant without times to live, and without item counters, which are written later. */
async function dumpTenant({ name }: Tenant): Promise<ReadonlyMap<string, string>> {
  const isCounter = (key: string): boolean => /^st:\{m:[^}]*\}:i:/.test(key);
  const own = (await redis.keys('*')).filter((key) => key.split(/[:{}]/).includes(name) && !isCounter(key));
  const found = new Map<string, string>();
  for (const key of own.sort()) {
    const bytes = await redis.dumpBuffer(key);
    if (bytes !== null) found.set(key, bytes.toString('base64'));
  }
  return found;
}

for (const route of tenantRoutes)
  test(`${nameOf(route)} shows and changes only data of its tenant for ids of both tenants`, async () => {
    for (const [tenant, other] of [
      [red, blue],
      [blue, red],
    ] as const) {
      const before = await dumpTenant(other);
      const answer = await call(tenant.caller, route, sharedIds);
      // 422: blue's answer with this id has other content.
      assert.ok(answer.status < 300 || [404, 422].includes(answer.status), answer.text);
      assert.ok(!fullText(answer).includes(other.marker), answer.text);
      if (route.method === 'GET') assert.doesNotMatch(answer.text, tenant.mixed);
      assert.deepEqual(await dumpTenant(other), before);
      // The job would look like a change by the other tenant.
      if (nameOf(route) === 'PUT /api/v1/settings') await timeZoneChanged(tenant.caller);
    }
  });

test('Erasures of the first tenant finish before the next comparisons', async () => {
  // The end of an erasure would look like a change by the other tenant.
  await waitFor('the erasures', async () => {
    const fields = await Promise.all(indices(16).map((partition) => redis.hkeys(erasuresKey(partition))));
    return !fields.flat().some((field) => field.startsWith(`@${red.name}`));
  });
});

for (const route of tenantRoutes)
  test(`${nameOf(route)} responds to ids of another tenant as to unknown ids`, async () => {
    const before = await dumpTenant(red);
    assert.ok(before.size > 0);
    const foreign = await call(blue.caller, route, redIds);
    const unknown = await call(blue.caller, route, unknownIds);
    assert.equal(normalize(foreign, redIds), normalize(unknown, unknownIds));
    assert.ok(!fullText(foreign).includes(red.marker), foreign.text);
    assert.deepEqual(await dumpTenant(red), before);
  });

test('GET /erasures/{erasure_id} responds to erasures of another tenant as to unknown ones', async () => {
  await red.caller.track({ user_id: 'erased', skill_id: 's', is_correct: true });
  const { json } = await red.caller.send('DELETE', '/api/v1/learners/erased');
  const { status_url } = json.data;
  const get = (path: string) => askInTurn(() => blue.caller.get(path));
  const unknown = await get(`/api/v1/erasures/${erasureId}`);
  assert.equal(unknown.status, 404);
  const assertUnknown = async () =>
    assert.equal(normalize(await get(status_url), sharedIds), normalize(unknown, sharedIds));
  await assertUnknown();
  await erasureDone(red.caller, status_url);
  await assertUnknown();
  for (const id of ['x', '3-x', '99999-00000000-0000-0000-0000-000000000000'])
    assert.equal((await get(`/api/v1/erasures/${id}`)).json.error.code, 'NOT_FOUND', id);
});

for (const route of tenantRoutes.filter(({ query }) => query?.names.includes('cursor')))
  test(`${nameOf(route)} shows nothing for a cursor of another tenant`, async () => {
    const path = routeRequests[nameOf(route)]?.(sharedIds).path ?? '';
    const { json } = await red.caller.get(`${path}?limit=1`);
    const cursor: unknown = json.data?.next_cursor ?? 'made-up';
    const answer = await blue.caller.raw({ method: 'GET', path: `${path}?cursor=${cursor}` });
    assert.ok([200, 400, 404].includes(answer.status), answer.text);
    assert.ok(!fullText(answer).includes(red.marker), answer.text);
  });

test('Routes without a key show no tenant, learner, skill or key', async () => {
  const names = [red.name, blue.name].map((name) => `"${name}"`);
  const secrets = [red.marker, blue.marker, '-of-both', 'own-', red.key, service.key, ...names];
  for (const route of routes.filter(({ scope }) => scope === null)) {
    const answer = await call(callerOf(service, null), route, sharedIds);
    assert.equal(answer.status, route.path === '/' ? 302 : 200, nameOf(route));
    for (const secret of secrets)
      assert.ok(!fullText(answer).includes(secret), `${nameOf(route)}: ${secret}`);
  }
});
