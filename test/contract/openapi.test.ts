/**
 * One call of each endpoint with the example of the description. With WRITE_DOCS=1 the test writes the responses as the
 * examples of the description.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { examples } from '../../src/contracts/responses/examples.js';
import { pathExamples } from '../../src/contracts/responses/openapi-texts.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { assertDescribed } from '../support/http/answer-check.js';
import { operationAt } from '../support/http/description.js';
import { callerOf, jsonOf } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { apiRoutes, nameOf } from '../support/http/route-table.js';
import { root } from '../support/runner/root.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitUntilNoAudit, waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, await keys.add({ quota: 10_000, scopes: allScopes }));

/** Calls that create come first, then changes, calls that delete last, then the status of the erasure. */
const methods = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'];
const lateRanks: Readonly<Record<string, number>> = {
  'POST /api/v1/groups/:group_id/members': 2,
  'GET /api/v1/erasures/:erasure_id': 9,
};
const rankOf = (name: string): number => lateRanks[name] ?? methods.indexOf(name.split(' ')[0] ?? '');
const routes = [...apiRoutes].sort((a, b) => rankOf(nameOf(a)) - rankOf(nameOf(b)));

const { user_id = '', skill_id = '', event_id = '', group_id = '' } = pathExamples;
const ids = { userId: user_id, skillId: skill_id, eventId: event_id, groupId: group_id };
const made = { erasureId: '', keyId: '', webhookId: '', messageId: '' };
const recorded: Record<string, unknown> = {};

function exampleBody(method: string, path: string): string | null {
  const schema = operationAt(method, path)?.requestBody?.content['application/json']?.schema;
  if (schema === undefined) return null;
  const events = schema.properties?.events?.items?.examples;
  return JSON.stringify(events === undefined ? schema.examples?.[0] : { events });
}

for (const route of routes) {
  const name = nameOf(route);
  test(`${name} responds as its description says`, async () => {
    const { method } = route;
    const { path = '', headers = {} } = routeRequests[name]?.({ ...ids, ...made }) ?? {};
    const body = exampleBody(method, route.path);
    // Examples of reads need the answers in ClickHouse.
    if (method === 'GET') await waitUntilStored(caller);
    if (name === 'POST /api/v1/audits') await waitUntilNoAudit(caller);
    const answer = await askInTurn(() => caller.raw({ method, path, headers, body }));
    assert.ok(answer.status < 400, answer.text);
    assertDescribed(answer, method, path);
    if (route.scope !== null) assert.match(answer.headers.ratelimit ?? '', /^"default";r=\d+;t=\d+$/);
    if (answer.headers['content-type'] !== 'application/json' || path === '/openapi.json') return;
    recorded[name] = jsonOf(answer);
    const { data } = jsonOf(answer);
    if (name === 'DELETE /api/v1/learners/:user_id') made.erasureId = data.erasure_id;
    if (name === 'POST /api/v1/keys') made.keyId = data.key_id;
    if (name === 'POST /api/v1/webhooks') made.webhookId = data.webhook_id;
    if (name === 'POST /api/v1/webhooks/:webhook_id/test') made.messageId = data.message_id;
  });
}

test('The description has an example of every JSON response', () => {
  if (process.env.WRITE_DOCS === '1') writeExamples();
  else
    assert.deepEqual(
      Object.keys(examples).sort(),
      Object.keys(recorded).sort(),
      'WRITE_DOCS=1 npm test -- contract/openapi writes the examples',
    );
});

function writeExamples(): void {
  const file = join(root, 'src/contracts/responses/examples.ts');
  const names = apiRoutes.map(nameOf).filter((name) => name in recorded);
  const lines = names.map((name) => `  '${name}': ${JSON.stringify(recorded[name])},\n`).join('');
  const text = readFileSync(file, 'utf8');
  const written = text.replace(/(= \{\n).*(\};\n)$/s, (_, head, end) => head + lines + end);
  writeFileSync(file, written);
}
