/** Two tenants with the same ids walk every route: neither sees, changes, or learns of what the other has. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Route } from '../../src/http/route.js';
import { indices } from '../../src/lists.js';
import { erasuresKey } from '../../src/store/redis/keys.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { type Answer, type Caller, callerOf, jsonOf } from '../support/http/http.js';
import { type Ids, routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { tenantDump } from '../support/inspect/tenant-dump.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);

interface Tenant {
  readonly name: string;
  /** Stands in names and ids of the tenant, and nowhere else. */
  readonly marker: string;
  readonly key: string;
  readonly caller: Caller;
  /** What an answer shows that has answers of the other tenant in it: red's are all right, blue's all wrong. */
  readonly mixed: RegExp;
}

async function tenantOf(name: string, marker: string, mixed: RegExp): Promise<Tenant> {
  const key = await keys.add({ tenant: name });
  return { name: keys.nameOf(name), marker, key, caller: callerOf(service, key), mixed };
}

const red = await tenantOf('red', 'crimson', /"is_correct":false|"accuracy_28d":0/);
const blue = await tenantOf('blue', 'azure', /"is_correct":true|"correct":[1-9]/);

/** In both tenants. */
const shared: Ids = {
  userId: 'user-of-both',
  skillId: 'skill-of-both',
  eventId: 'event-of-both',
  erasureId: '1-00000000-0000-4000-8000-000000000000',
  webhookId: 'wh_of-both',
};
/** In red alone, but for the erasure; and in no tenant. */
const redsOwn: Ids = {
  ...{ userId: 'own-1', skillId: 'own-2', eventId: 'own-3', erasureId: shared.erasureId },
  webhookId: await makeWebhook(red),
};
const nobodys: Ids = {
  ...{ userId: 'no-1', skillId: 'no-2', eventId: 'no-3', erasureId: shared.erasureId },
  webhookId: 'wh_no-4',
};

/** Only the service can say its id. */
async function makeWebhook({ caller, marker }: Tenant): Promise<string> {
  const body = { url: `https://${marker}.example.org/`, event_types: ['*'], description: `${marker} hook` };
  const { status, json } = await caller.call({ path: '/api/v1/webhooks', body: JSON.stringify(body) });
  assert.equal(status, 201);
  return json.data.webhook_id;
}

async function fill({ caller, marker }: Tenant, ids: Ids, isCorrect: boolean): Promise<void> {
  const { userId: user_id, skillId, eventId } = ids;
  const answer = { user_id, is_correct: isCorrect };
  const path = `/api/v1/goals/${user_id}`;
  const statuses = [
    await caller.track({ ...answer, skill_id: skillId, event_id: eventId }),
    await caller.track({ ...answer, skill_id: skillId, item_id: `${marker}-item` }),
    await caller.track({ ...answer, skill_id: `${marker}-skill` }),
    await caller.call({
      method: 'PUT',
      path,
      body: JSON.stringify({ target_score: isCorrect ? 1500 : 800 }),
    }),
    await caller.call({
      method: 'PUT',
      path: `/api/v1/skills/${skillId}`,
      body: JSON.stringify({ name: `${marker} name`, section: 'math' }),
    }),
  ].map(({ status }) => status);
  assert.deepEqual(statuses, [200, 200, 200, 200, 200]);
}

await fill(red, shared, true);
await fill(red, redsOwn, true);
await fill(blue, shared, false);

// What is read from ClickHouse has to be there.
await waitFor('an empty outbox', async () => {
  const { json } = await callerOf(service, null).get('/api/v1/health');
  return json.data.checks.pipeline.outbox_length === 0;
});

/** Reads first, and deletions last, so that all of them find something. */
const order: readonly Route['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const routes = [...routeTable].sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
/** The scope operator reaches beyond a tenant. */
const ofTenants = routes.filter(({ scope }) => scope !== null && scope !== 'operator');

function ask(caller: Caller, route: Route, ids: Ids): Promise<Answer> {
  const parts = routeRequests[nameOf(route)];
  assert.ok(parts !== undefined, `test/support/http/route-requests.ts has no ${nameOf(route)}`);
  return askInTurn(() => caller.raw({ method: route.method, ...parts(ids) }));
}

/** All that a caller can tell answers apart by, but times, tags of versions, request ids and the ids that were asked for. */
function seen({ status, headers, text }: Answer, ids: Ids): string {
  const { 'x-request-id': _, date: __, etag: ___, 'content-length': ____, ...told } = headers;
  let all = JSON.stringify([status, told, text]).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  all = all.replace(/\d+-[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ERASURE');
  all = all.replace(/whsec_[\w+/=]+/g, 'SECRET');
  // Changes with every second since the last answer.
  all = all.replace(/(expected_\w+\\":)[\d.]+/g, '$1EXPECTED');
  // The webhook or key that the request made.
  if (status === 201) all = all.replace(/(wh_|sk-|key_id\\":\\")[\w-]+/g, 'MADE');
  for (const [name, id] of Object.entries(ids)) all = all.replaceAll(id, name);
  return all;
}

const bytesOf = ({ headers, text }: Answer): string => JSON.stringify(headers) + text;

for (const route of ofTenants) {
  test(`${nameOf(route)} with ids of both tenants shows and changes the caller's alone`, async () => {
    for (const [tenant, other] of [
      [red, blue],
      [blue, red],
    ] as const) {
      const before = await tenantDump(redis, other.name);
      const answer = await ask(tenant.caller, route, shared);
      // 422: of blue, whose answer with this id was another one.
      assert.ok(answer.status < 300 || [404, 422].includes(answer.status), answer.text);
      assert.ok(!bytesOf(answer).includes(other.marker), answer.text);
      if (route.method === 'GET') assert.doesNotMatch(answer.text, tenant.mixed);
      assert.deepEqual(await tenantDump(redis, other.name), before);
    }
  });
}
/** Erasures of red's that are not done: what they forget in the end would look like a change by blue. */
async function openErasures(): Promise<string[]> {
  const fields = await Promise.all(indices(16).map((partition) => redis.hkeys(erasuresKey(partition))));
  return fields.flat().filter((field) => field.startsWith(`@${red.name}`));
}

test("red's erasures are done before anything is compared", async () => {
  await waitFor('erasures to be done', async () => (await openErasures()).length === 0);
});

for (const route of ofTenants) {
  test(`${nameOf(route)} answers for another tenant's ids as for nobody's`, async () => {
    const before = await tenantDump(redis, red.name);
    assert.ok(before.size > 0);
    const foreign = await ask(blue.caller, route, redsOwn);
    const unknown = await ask(blue.caller, route, nobodys);
    assert.equal(seen(foreign, redsOwn), seen(unknown, nobodys));
    assert.ok(!bytesOf(foreign).includes(red.marker), foreign.text);
    assert.deepEqual(await tenantDump(redis, red.name), before);
  });
}

test("another tenant's erasure is as unknown as one that nobody began, pending and done", async () => {
  await red.caller.track({ user_id: 'erased', skill_id: 's', is_correct: true });
  const begun = await red.caller.raw({ method: 'DELETE', path: '/api/v1/learners/erased' });
  const { status_url } = jsonOf(begun).data;
  const told = (path: string) => askInTurn(() => blue.caller.raw({ method: 'GET', path }));
  const unknown = await told(`/api/v1/erasures/${shared.erasureId}`);
  assert.equal(unknown.status, 404);
  const foreign = () => told(status_url);
  assert.equal(seen(await foreign(), shared), seen(unknown, shared));
  await erasureDone(red.caller, status_url);
  assert.equal(seen(await foreign(), shared), seen(unknown, shared));
});

for (const route of ofTenants.filter(({ query }) => query?.names.includes('cursor'))) {
  test(`${nameOf(route)} shows nothing for another tenant's cursor`, async () => {
    const path = routeRequests[nameOf(route)]?.(shared).path ?? '';
    const { json } = await red.caller.get(`${path}?limit=1`);
    const cursor: unknown = json.data?.next_cursor ?? 'made-up';
    const answer = await blue.caller.raw({ method: 'GET', path: `${path}?cursor=${cursor}` });
    assert.ok([200, 400, 404].includes(answer.status), answer.text);
    assert.ok(!bytesOf(answer).includes(red.marker), answer.text);
  });
}

test('routes without a key tell of no tenant, learner, skill or key', async () => {
  const secrets = [
    red.marker,
    blue.marker,
    '-of-both',
    'own-',
    red.key,
    service.key,
    `"${red.name}"`,
    `"${blue.name}"`,
  ];
  for (const route of routes.filter(({ scope }) => scope === null)) {
    const answer = await ask(callerOf(service, null), route, shared);
    assert.equal(answer.status, route.path === '/' ? 302 : 200, nameOf(route));
    for (const secret of secrets) assert.ok(!bytesOf(answer).includes(secret), `${nameOf(route)}: ${secret}`);
  }
});
