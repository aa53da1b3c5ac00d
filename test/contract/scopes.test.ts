/** Every route with every key: which scope opens it, which routes need no key, and when a revoked key ends. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allScopes, type Scope } from '../../src/contracts/access/access.js';
import { callerOf } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { keysOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const processes = 2;
const service = await startService({ after }, { apiProcesses: processes });
const keys = await keysOf({ after }, service);

const ids = {
  ...{ userId: 'u', skillId: 's', eventId: 'e', webhookId: 'wh_none' },
  erasureId: '1-00000000-0000-4000-8000-000000000000',
};
const keyless = routeTable.filter(({ scope }) => scope === null);
const keyed = routeTable.filter(({ scope }) => scope !== null);

async function ask(key: string | null, route: (typeof routeTable)[number]) {
  const parts = routeRequests[nameOf(route)];
  assert.ok(parts !== undefined, `test/support/http/route-requests.ts has no ${nameOf(route)}`);
  return callerOf(service, key).raw({ method: route.method, ...parts(ids) });
}

const anyKey = /\/key$/;
/** What the contract says of keys; a route that is added has to be added here. */
const scopes: Readonly<Record<Scope, readonly RegExp[]>> = {
  write: [
    anyKey,
    /^POST \/api\/v1\/track-answers?$/,
    /^(POST|PUT) \/xapi\/statements$/,
    /^(PUT|DELETE) .*\/goals\//,
    /^DELETE .*\/attempts\//,
  ],
  admin: [
    /^(PUT|DELETE) .*\/skills\//,
    /^GET .*\/export$/,
    /^DELETE .*\/learners\/:user_id$/,
    /\/erasures/,
    /\/webhooks/,
    anyKey,
    /\/keys/,
    /^(GET|PUT) .*\/xapi-mapping$/,
  ],
  operator: [anyKey, /\/keys/, /\/(parked|audits|deployment|live)/, /^POST .*\/model\/rollback$/],
  read: [
    anyKey,
    /^POST \/api\/v1\/(predictions|next-items|mastery$)/,
    /^GET .*\/(predictions|mastery|velocity|goals|skills|skill-statistics|learners$)/,
    /^GET .*\/attempts$/,
    /^GET .*\/model\//,
  ],
};

for (const route of keyed) {
  test(`${nameOf(route)} takes keys of the scope ${[route.scope].flat().join(' or ')} only`, async () => {
    const allowed = allScopes.filter((scope) => scopes[scope].some((pattern) => pattern.test(nameOf(route))));
    assert.deepEqual([route.scope].flat(), allowed, 'as the contract says');
    for (const scope of allScopes) {
      const { status, text } = await ask(await keys.add({ scopes: [scope] }), route);
      assert.equal(status === 403, !allowed.includes(scope), `${scope}: ${text}`);
      assert.notEqual(status, 401);
    }
  });
}

for (const route of keyed) {
  test(`${nameOf(route)} is closed without a key in store`, async () => {
    const challenge = route.protocol ? 'Basic realm="xAPI", ApiKey' : 'ApiKey';
    for (const key of [
      null,
      '',
      'unknown',
      `${service.key} `,
      service.key.toUpperCase(),
      `${service.key}0`,
    ]) {
      const { status, headers, text } = await ask(key, route);
      // White space around a header's value is not part of it.
      if (key === `${service.key} `) assert.notEqual(status, 401);
      else assert.deepEqual([status, headers['www-authenticate']], [401, challenge], text);
    }
  });
}

test('what needs no key is known by name, and a wrong key changes nothing', async () => {
  const names = [
    '/livez',
    '/readyz',
    '/metrics',
    '/api/v1/health',
    '/openapi.json',
    '/docs',
    '/dashboard',
    '/xapi/about',
  ];
  for (const route of keyless) {
    const isNamed = route.path === '/' || names.some((name) => route.path.startsWith(name));
    assert.ok(isNamed && route.method === 'GET', nameOf(route));
    const well = route.path === '/' ? 302 : 200;
    for (const key of [null, 'unknown']) assert.equal((await ask(key, route)).status, well, nameOf(route));
  }
});

/** Every process makes request ids that begin with a mark of its own. */
async function answersByProcess(key: string): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  await waitFor('answers of every process', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => callerOf(service, key).get('/api/v1/skills')),
    );
    for (const { status, headers } of answers) seen.set(headers['x-request-id']?.split('-')[0] ?? '', status);
    return seen.size === processes;
  });
  return seen;
}

test('a revoked key is refused by every process 2 s later, used meanwhile or not', async () => {
  const [used, rested] = [await keys.add(), await keys.add()];
  for (const key of [used, rested]) assert.deepEqual([...(await answersByProcess(key)).values()], [200, 200]);
  assert.ok((await keys.revoke(used)) && (await keys.revoke(rested)));
  const until = performance.now() + 2000;
  while (performance.now() < until) {
    await callerOf(service, used).get('/api/v1/skills');
    await sleep(100);
  }
  for (const key of [used, rested]) assert.deepEqual([...(await answersByProcess(key)).values()], [401, 401]);
});
