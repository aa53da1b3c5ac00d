/** The description of the API: valid, complete, and of use to generators of code. */
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
import { type Content, described, document, misfits, operationAt } from '../support/http/description.js';
import { apiRoutes, nameOf } from '../support/http/route-table.js';
import { root } from '../support/runner/root.js';
import { tempDir } from '../support/temp.js';

const textOfDocument = JSON.stringify(document);

async function assertValid(value: object): Promise<void> {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(value)));
  assert.ok(valid, JSON.stringify(errors));
}

test('is a valid document of OpenAPI 3.1', () => assertValid(document));

test('a validator finds what is wrong', async () => {
  await assert.rejects(assertValid({ ...document, paths: { '/x': { get: { responses: 1 } } } }));
});

test('has every route, each under a name of its own, and nothing else', () => {
  const names = Object.keys(routeResponses).sort();
  assert.deepEqual(apiRoutes.map(nameOf).sort(), names);
  assert.deepEqual(Object.keys(operations).sort(), names);
  for (const { method, path } of apiRoutes) assert.ok(operationAt(method, path), path);
  const ids = Object.values(operations).map(([id]) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[a-z]+([A-Z][a-z]+)*$/);
});

test('a route that nothing describes is an error', () => {
  const [route] = apiRoutes;
  assert.ok(route);
  assert.throws(() => buildOpenapi([{ ...route, path: '/nowhere' }]), /nothing describes POST \/nowhere/);
});

test('has all that a schema refers to, and nothing of TypeBox', () => {
  assert.doesNotMatch(textOfDocument, /~\w+|"undefined"/);
  for (const [name] of Object.entries((document as { components: { schemas: object } }).components.schemas))
    assert.ok(textOfDocument.includes(`"#/components/schemas/${name}"`), `${name} is not used`);
});

const contents: readonly (readonly [string, Content])[] = Object.entries(described.paths).flatMap(
  ([path, here]) =>
    Object.entries(here).flatMap(([method, { requestBody, responses }]) =>
      [requestBody, ...Object.values(responses)].flatMap((one) =>
        Object.entries(one?.content ?? {}).map(
          ([type, content]) => [`${method} ${path} ${type}`, content] as const,
        ),
      ),
    ),
);

test('examples fit their schemas; every body of a request, every answer in JSON has one', () => {
  for (const [name, { schema, example }] of contents) {
    const examples = [...(example === undefined ? [] : [example]), ...(schema.examples ?? [])];
    for (const one of examples) assert.deepEqual(misfits(schema, one), [], name);
  }
  for (const [path, here] of Object.entries(described.paths))
    for (const { requestBody, responses } of Object.values(here)) {
      for (const { schema } of Object.values(requestBody?.content ?? {}))
        assert.ok(schema.examples ?? schema.properties?.events, path);
      const { content } = responses[200] ?? responses[201] ?? responses[202] ?? {};
      const answer = content?.['application/json'];
      assert.ok(answer === undefined || path === '/openapi.json' || answer.example !== undefined, path);
    }
});

test('tells of every event, with an example that fits', () => {
  const { webhooks } = described;
  assert.deepEqual(Object.keys(webhooks), [...webhookTypes]);
  for (const [type, { post }] of Object.entries(webhooks))
    for (const { schema, example } of Object.values(post?.requestBody?.content ?? {}))
      assert.deepEqual(misfits(schema, example), [], type);
});

/** What TypeScript cannot know of the document, and has to be so that callers can use the types. */
const usage = `import type { components, operations } from './api.js';
type Body<Op extends keyof operations> = operations[Op] extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;
export const event: Body<'trackAnswer'> = { user_id: 'ada', skill_id: 's', is_correct: true, occurred_at: null };
type Told = operations['trackAnswer']['responses'][200]['content']['application/json'];
export const told = (answer: Told): number => answer.data.mastery_after;
export const code = (answer: components['responses']['RATE_LIMITED']['content']['application/json']): 'RATE_LIMITED' => answer.error.code;
// @ts-expect-error a field of the wrong type
export const wrong: Body<'trackAnswer'> = { user_id: 1, skill_id: 's', is_correct: true };
`;

test('openapi-typescript makes types of it that compile', async (t) => {
  // It needs the compiler's API, which TypeScript 7 does not have.
  const hook = `export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`, import.meta.url);
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const folder = await tempDir(t);
  writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(textOfDocument)));
  writeFileSync(join(folder, 'usage.ts'), usage);
  // Without types of packages, which take ten times as long.
  const fast = ['--skipLibCheck', '--lib', 'es2022', '--typeRoots', folder];
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', ...fast];
  const { status, stdout } = spawnSync(
    join(root, 'node_modules/.bin/tsc'),
    [...options, join(folder, 'usage.ts')],
    { encoding: 'utf8', cwd: folder },
  );
  assert.equal(status, 0, stdout);
});
