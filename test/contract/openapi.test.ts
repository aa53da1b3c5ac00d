/**
 * Each endpoint answers as the description says, example by example. With WRITE_DOCS=1 in the environment the answers are
 * written down as the examples of the description.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { examples } from '../../src/contracts/responses/examples.js';
import { pathExamples } from '../../src/contracts/responses/openapi-texts.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { assertAnswer } from '../support/http/answer-check.js';
import { operationAt } from '../support/http/description.js';
import { callerOf, jsonOf } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { apiRoutes, nameOf, targetOf } from '../support/http/route-table.js';
import { root } from '../support/runner/root.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const limited = await keys.add({ quota: 10_000, scopes: allScopes });

/** What the requests below need to find something, and what has to come last. */
const order = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'];
const last = ['GET /api/v1/erasures/:erasure_id'];
const rank = (name: string): number => (last.includes(name) ? 9 : order.indexOf(name.split(' ')[0] ?? ''));
const routes = [...apiRoutes].sort((a, b) => rank(nameOf(a)) - rank(nameOf(b)));

const ids = {
  userId: pathExamples.user_id ?? '',
  skillId: pathExamples.skill_id ?? '',
  eventId: pathExamples.event_id ?? '',
};
const file = join(root, 'src/contracts/responses/examples.ts');
const recorded: Record<string, unknown> = {};
const made = { erasureId: '', keyId: '', webhookId: '', messageId: '' };

/** The example of the description is what is sent. */
function bodyOf(method: string, path: string): string | null {
  const schema = operationAt(method, path)?.requestBody?.content['application/json']?.schema;
  if (schema === undefined) return null;
  const events = schema.properties?.events?.items?.examples;
  return JSON.stringify(events === undefined ? schema.examples?.[0] : { events });
}

for (const route of routes) {
  const name = nameOf(route);
  test(`${name} answers as described`, async () => {
    const { path = '', headers = {} } = routeRequests[name]?.({ ...ids, ...made }) ?? {};
    const parts = { method: route.method, path, headers, body: bodyOf(route.method, route.path) };
    const answer = await askInTurn(() => callerOf(service, limited).raw(parts));
    const target = targetOf(route.method, path.split('?')[0] ?? '');
    assert.ok(answer.status < 400, answer.text);
    assertAnswer(answer, { method: route.method, target, requestId: null });
    if (route.scope !== null) assert.match(answer.headers.ratelimit ?? '', /^"default";r=\d+;t=\d+$/);
    const isJson = answer.headers['content-type'] === 'application/json';
    const isOwn = route.path === '/openapi.json';
    if (isJson && !isOwn) recorded[name] = jsonOf(answer);
    const { data } = isJson ? jsonOf(answer) : {};
    if (name === 'DELETE /api/v1/learners/:user_id') made.erasureId = data.erasure_id;
    if (name === 'POST /api/v1/keys') made.keyId = data.key_id;
    if (name === 'POST /api/v1/webhooks') made.webhookId = data.webhook_id;
    if (name === 'POST /api/v1/webhooks/:webhook_id/test') made.messageId = data.message_id;
  });
}

test('the examples of answers are of these calls', () => {
  const lines = apiRoutes
    .map(nameOf)
    .filter((name) => name in recorded)
    .map((name) => `  '${name}': ${JSON.stringify(recorded[name])},\n`);
  const wanted = readFileSync(file, 'utf8').replace(
    /(= \{\n).*(\};\n)$/s,
    (_, head, end) => head + lines.join('') + end,
  );
  if (process.env.WRITE_DOCS === '1') writeFileSync(file, wanted);
  else
    assert.deepEqual(
      Object.keys(examples).sort(),
      Object.keys(recorded).sort(),
      'WRITE_DOCS=1 npm test -- contract/openapi',
    );
});
