/** The OpenAPI 3.1 document of a table of routes, made from the schemas that validate: nothing is described twice. */
import { STATUS_CODES } from 'node:http';
import type { TSchema } from 'typebox';
import { LearningEvent, LearningEventResult } from '../contracts/events.js';
import { TargetScore } from '../contracts/goals.js';
import { Id } from '../contracts/ids.js';
import * as bodies from '../contracts/responses/bodies.js';
import { examples } from '../contracts/responses/examples.js';
import * as words from '../contracts/responses/operations.js';
import { errorAnswerOf, routeAnswers } from '../contracts/responses/routes.js';
import { type ErrorCode, errorTable } from '../errors.js';
import { distinct, groupedBy } from '../lists.js';
import { version } from '../version.js';
import type { Route } from './route.js';

/** What the service sends of its own accord. */
export interface Webhook {
  readonly summary: string;
  readonly schema: TSchema;
  readonly example: unknown;
}

/** Schemas with a name of their own. */
const { ErrorObject, Skill, LearnerSkill, Parameters, Explanation, Attempt, Goal, GoalTracking } = bodies;
const { Prediction, Practice, BatchResult, SkillMastery, Mastery, Velocity, WhatIf, Erasure } = bodies;
const named = {
  ...{ Id, LearningEvent, LearningEventResult, TargetScore, ErrorObject, Skill, LearnerSkill, Parameters },
  ...{ Explanation, Attempt, Goal, GoalTracking, Prediction, Practice, BatchResult, SkillMastery, Mastery },
  ...{ Velocity, WhatIf, Erasure },
};
const nameByText = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]));

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** As JSON with references to named schemas, of which one with the same text is the same. @param self stays as it is */
const plain = (schema: TSchema, self?: TSchema): unknown =>
  JSON.parse(
    JSON.stringify(schema, (_, value: unknown) => {
      const name = typeof value === 'object' ? nameByText.get(JSON.stringify(value)) : undefined;
      return name === undefined || value === self ? value : ref('schemas', name);
    }),
  );

const mapped = <Value>(table: Readonly<Record<string, Value>>, of: (value: Value, name: string) => unknown) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, of(value, name)]));

const statusOf = (code: ErrorCode): number => errorTable[code].status;

/** Headers that always come with an error. */
const ofError: Partial<Record<ErrorCode, string>> = {
  UNAUTHORIZED: 'WWW-Authenticate',
  METHOD_NOT_ALLOWED: 'Allow',
  RATE_LIMITED: 'Retry-After',
  UNAVAILABLE: 'Retry-After',
};
const always = ['X-Request-Id', 'Retry-After', 'WWW-Authenticate', 'Allow', 'ETag'];
const quotaHeaders = ['RateLimit-Policy', 'RateLimit'];

const headersOf = (names: readonly string[]) =>
  Object.fromEntries(['X-Request-Id', ...names].map((name) => [name, ref('headers', name)]));

const contentOf = (schema: TSchema | null, example?: unknown) =>
  schema && {
    content: {
      [(schema as { contentMediaType?: string }).contentMediaType ?? 'application/json']: {
        schema: plain(schema),
        ...(example !== undefined && { example }),
      },
    },
  };

const errorAnswer = (codes: readonly ErrorCode[], schema: TSchema = errorAnswerOf(codes)) => ({
  description: codes
    .map((code) => `${code}: ${words.errorMeanings[code]}. Safe to retry: ${errorTable[code].retry}.`)
    .join('\n\n'),
  headers: headersOf([...quotaHeaders, ...codes.flatMap((code) => ofError[code] ?? [])]),
  ...contentOf(schema, {
    success: false,
    error: { code: codes[0], message: codes[0] && words.errorMeanings[codes[0]] },
  }),
  'x-retry': Object.fromEntries(codes.map((code) => [code, errorTable[code].retry])),
});

function parametersOf({ path, query }: Route, headers: readonly string[]) {
  const ids = (path.match(/(?<=:)\w+/g) ?? []).map((name) => {
    const example = words.pathExamples[name];
    return { name, in: 'path', required: true, schema: plain(Id), ...(example !== undefined && { example }) };
  });
  const { properties = {}, required = [] }: { properties?: object; required?: readonly string[] } =
    query?.schema ?? {};
  const queries = Object.entries<TSchema>({ ...properties }).map(([name, schema]) => ({
    ...{ name, in: 'query', schema: plain(schema) },
    required: required.includes(name) && !('default' in schema),
  }));
  const known = ['X-Request-Id', ...headers].filter((name) => name in words.requestHeaders);
  return [...ids, ...queries, ...known.map((name) => ref('parameters', name))];
}

const bodyOf = ({ body }: Route) =>
  body && {
    requestBody: {
      required: true,
      description: `At most ${body.limit / 1024} KiB`,
      content: Object.assign({}, ...Object.values(body.content).map((schema) => contentOf(schema)?.content)),
    },
  };

/** @throws Error for a route that nothing describes */
function operationOf(route: Route) {
  const name = `${route.method} ${route.path}`;
  const answers = routeAnswers[name];
  const operation = (words.operations as Readonly<Record<string, words.Operation>>)[name];
  if (answers === undefined || operation === undefined) throw new Error(`nothing describes ${name}`);
  const { id, summary, security = route.scope === null ? [] : (['ApiKey'] as const) } = operation;
  const isConditional = answers.errors.includes('PRECONDITION_FAILED');
  const quota = route.scope === null ? [] : quotaHeaders;
  const sent = operation.headers.filter((header) => header in words.answerHeaders);
  const codesBy = groupedBy(answers.errors, statusOf);
  const statuses = distinct([...Object.keys(answers.bodies).map(Number), ...codesBy.keys()]);
  const answerOf = (status: number) => {
    const schema = answers.bodies[status];
    const codes = codesBy.get(status) ?? [];
    if (codes.length > 0) return schema ? errorAnswer(codes, schema) : ref('responses', codes.join('.'));
    const headers = headersOf([...quota, ...sent]);
    return { description: STATUS_CODES[status], headers, ...contentOf(schema ?? null, examples[name]) };
  };
  return {
    ...{ operationId: id, summary },
    tags: [route.scope === null ? 'service' : (/^\/\w+\/\w+\/([a-z]+)/.exec(route.path)?.[1] ?? 'service')],
    ...(route.scope !== null && { description: `Scope: ${route.scope}`, 'x-scope': route.scope }),
    security: security.map((scheme) => ({ [scheme]: [] })),
    parameters: parametersOf(route, [...operation.headers, ...(isConditional ? ['If-Match'] : [])]),
    ...bodyOf(route),
    responses: Object.fromEntries(statuses.map((status) => [status, answerOf(status)])),
  };
}

/** @throws Error for a route that nothing describes */
export function openapiOf(routes: readonly Route[], webhooks: Readonly<Record<string, Webhook>> = {}) {
  const sets = Object.values(routeAnswers).flatMap(({ errors }) => [...groupedBy(errors, statusOf).values()]);
  const single = (Object.keys(errorTable) as ErrorCode[]).map((code) => [code]);
  const paths = groupedBy(routes, ({ path }) => path.replace(/:(\w+)/g, '{$1}'));
  const byMethod = (here: readonly Route[]) =>
    here.map((one) => [one.method.toLowerCase(), operationOf(one)]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Skilltrace',
      version,
      summary: 'Learning analytics',
      description: words.description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries([...paths].map(([path, here]) => [path, Object.fromEntries(byMethod(here))])),
    webhooks: mapped(webhooks, ({ summary, schema, example }, name) => ({
      post: {
        ...{ operationId: name, summary, requestBody: contentOf(schema, example) },
        responses: { '2XX': { description: 'Received' } },
      },
    })),
    components: {
      schemas: mapped(named, (schema) => plain(schema, schema)),
      responses: Object.fromEntries(
        [...single, ...sets].map((codes) => [codes.join('.'), errorAnswer(codes)]),
      ),
      parameters: mapped(words.requestHeaders, ({ description, ...rest }, name) => ({
        ...{ name, in: 'header', description, schema: { type: 'string', ...rest } },
      })),
      headers: mapped(words.answerHeaders, (description, name) => ({
        ...{ description, required: always.includes(name), schema: { type: 'string' } },
      })),
      securitySchemes: words.securitySchemes,
    },
  };
}
