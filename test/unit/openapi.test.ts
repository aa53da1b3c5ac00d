import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { operations } from '../../src/contracts/responses/openapi-texts.js';
import { routeResponses } from '../../src/contracts/responses/route-responses.js';
import { webhookTypes } from '../../src/contracts/webhooks/webhook-events.js';
import { buildOpenapi } from '../../src/http/openapi.js';
import { described, document, misfits, operationAt } from '../support/http/description.js';
import { apiRoutes, nameOf } from '../support/http/route-table.js';
import { root } from '../support/runner/root.js';
import { tempDir } from '../support/temp.js';

const documentText = JSON.stringify(document);

test('The description is a valid document of OpenAPI 3.1 without TypeBox or unused schemas', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(documentText));
  assert.ok(valid, JSON.stringify(errors));
  assert.doesNotMatch(documentText, /~\w+|"undefined"/);
  const { components } = document as { components: { schemas: object } };
  for (const name of Object.keys(components.schemas))
    assert.ok(documentText.includes(`"#/components/schemas/${name}"`), `${name} is not used`);
});

test('The description has every route under a unique name, and no other', () => {
  const names = Object.keys(routeResponses).sort();
  assert.deepEqual(apiRoutes.map(nameOf).sort(), names);
  assert.deepEqual(Object.keys(operations).sort(), names);
  for (const { method, path } of apiRoutes) assert.ok(operationAt(method, path), path);
  const ids = Object.values(operations).map(([id]) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[a-z]+([A-Z][a-z]+)*$/);
});

test('buildOpenapi throws for a route without a description', () => {
  const route = apiRoutes[0] ?? assert.fail('no routes');
  assert.throws(
    () => buildOpenapi([{ ...route, path: '/nowhere' }]),
    /route POST \/nowhere has no description/,
  );
});

test('Every request body and JSON response of the description has an example that fits its schema', () => {
  for (const [path, methods] of Object.entries(described.paths))
    for (const { requestBody, responses } of Object.values(methods)) {
      const bodies = Object.values(requestBody?.content ?? {});
      for (const { schema } of bodies) assert.ok(schema.examples ?? schema.properties?.events, path);
      const { content } = responses[200] ?? responses[201] ?? responses[202] ?? {};
      const json = content?.['application/json'];
      assert.ok(json === undefined || path === '/openapi.json' || json.example !== undefined, path);
      const contents = Object.values(responses).flatMap((response) => Object.values(response.content ?? {}));
      for (const { schema, example } of [...bodies, ...contents])
        for (const one of [...(example === undefined ? [] : [example]), ...(schema.examples ?? [])])
          assert.deepEqual(misfits(schema, one), [], path);
    }
});

test('The description has every type of webhook event, with an example that fits its schema', () => {
  const { webhooks } = described;
  assert.deepEqual(Object.keys(webhooks), [...webhookTypes]);
  for (const [type, { post }] of Object.entries(webhooks))
    for (const { schema, example } of Object.values(post?.requestBody?.content ?? {}))
      assert.deepEqual(misfits(schema, example), [], type);
});

const usage = `import type { components, operations } from './api.js';
type Body<Op extends keyof operations> = operations[Op] extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;
export const event: Body<'trackAnswer'> = { user_id: 'ada', skill_id: 's', is_correct: true, occurred_at: null };
type Result = operations['trackAnswer']['responses'][200]['content']['application/json'];
export const mastery = (result: Result): number => result.data.mastery_after;
export const code = (error: components['responses']['RATE_LIMITED']['content']['application/json']): 'RATE_LIMITED' => error.error.code;
// @ts-expect-error a field of the wrong type
export const wrong: Body<'trackAnswer'> = { user_id: 1, skill_id: 's', is_correct: true };
`;

test('openapi-typescript generates types from the description that callers can use', async (t) => {
  // openapi-typescript needs the compiler's API, which TypeScript 7 does not have.
  const hook = `export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`, import.meta.url);
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const folder = await tempDir(t);
  writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(documentText)));
  writeFileSync(join(folder, 'usage.ts'), usage);
  const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext'];
  // Without types of packages, which take ten times as long.
  const fast = ['--skipLibCheck', '--lib', 'es2022', '--typeRoots', folder];
  const tsc = join(root, 'node_modules/.bin/tsc');
  const args = [...strict, ...fast, join(folder, 'usage.ts')];
  const { status, stdout } = spawnSync(tsc, args, { encoding: 'utf8', cwd: folder });
  assert.equal(status, 0, stdout);
});
