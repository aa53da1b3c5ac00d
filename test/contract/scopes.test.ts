/** Which scopes each route accepts, and which routes need no key. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allScopes, type Scope } from '../../src/contracts/access/access.js';
import { callerOf } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { timeZoneChanged } from '../support/time-zone-changed.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const keyOfScope = new Map<Scope, string>();
for (const scope of allScopes) keyOfScope.set(scope, await keys.add({ scopes: [scope] }));

const ids = {
  ...{ userId: 'u', skillId: 's', eventId: 'e', webhookId: 'wh_none' },
  erasureId: '1-00000000-0000-4000-8000-000000000000',
};
type Route = (typeof routeTable)[number];

function call(key: string | null, route: Route) {
  const parts = routeRequests[nameOf(route)];
  assert.ok(parts !== undefined, `test/support/http/route-requests.ts lacks ${nameOf(route)}`);
  return callerOf(service, key).raw({ method: route.method, ...parts(ids) });
}

const anyKey = /\/key$/;
/** The scopes of the contract. Add new routes here. */
const scopes: Readonly<Record<Scope, readonly RegExp[]>> = {
  write: [
    anyKey,
    /^POST \/api\/v1\/track-answers?$/,
    /^(POST|PUT) \/xapi\/statements$/,
    /^(PUT|DELETE) .*\/goals\//,
    /^DELETE .*\/attempts\//,
    /^(PUT|DELETE|POST) .*\/groups\//,
    /^PUT .*\/profile$/,
  ],
  admin: [
    /^(PUT|DELETE) .*\/skills\//,
    /^GET .*\/export$/,
    /^DELETE .*\/learners\/:user_id$/,
    /\/erasures/,
    /\/webhooks/,
    anyKey,
    /\/keys/,
    /\/activity$/,
    /^(GET|PUT) .*\/xapi-mapping$/,
    /^PUT .*\/settings$/,
  ],
  operator: [anyKey, /\/keys/, /\/(parked|audits|activity|deployment|live)/, /^POST .*\/model\/rollback$/],
  read: [
    anyKey,
    /^POST \/api\/v1\/(predictions|next-items|mastery$)/,
    /^GET .*\/(predictions|mastery|velocity|goals|skills|skill-statistics|learners$)/,
    /^GET .*\/attempts$/,
    /^GET .*\/(groups|profile|settings)/,
    /^POST .*\/profiles$/,
    /^GET .*\/model\//,
  ],
};

for (const route of routeTable.filter(({ scope }) => scope !== null)) {
  const name = nameOf(route);
  test(`${name} accepts only keys with scope ${[route.scope].flat().join(' or ')}`, async () => {
    const allowed = allScopes.filter((scope) => scopes[scope].some((pattern) => pattern.test(name)));
    assert.deepEqual([route.scope].flat(), allowed, 'the route differs from the contract');
    for (const [scope, key] of keyOfScope) {
      const { status, text } = await call(key, route);
      assert.equal(status === 403, !allowed.includes(scope), `${scope}: ${text}`);
      assert.notEqual(status, 401);
    }
    if (name === 'PUT /api/v1/settings')
      await timeZoneChanged(callerOf(service, keyOfScope.get('read') ?? null));
    // White space after a header value is not part of it.
    assert.notEqual((await call(`${service.key} `, route)).status, 401);
    const challenge = route.protocol ? 'Basic realm="xAPI", ApiKey' : 'ApiKey';
    for (const key of [null, '', 'unknown', service.key.toUpperCase(), `${service.key}0`]) {
      const { status, headers, text } = await call(key, route);
      assert.deepEqual([status, headers['www-authenticate']], [401, challenge], text);
    }
  });
}

test('Probes, metrics, descriptions and pages need no key and ignore a wrong one', async () => {
  const keyless =
    /^GET (\/|\/(livez|readyz|metrics|openapi\.json|docs.*|dashboard.*|xapi\/about)|\/api\/v1\/health)$/;
  for (const route of routeTable.filter(({ scope }) => scope === null)) {
    assert.match(nameOf(route), keyless);
    for (const key of [null, 'unknown'])
      assert.equal((await call(key, route)).status, route.path === '/' ? 302 : 200, nameOf(route));
  }
});
