import { STATUS_CODES } from 'node:http';
import Type, { type TSchema } from 'typebox';
import { LearningEvent, LearningEventResult } from '../contracts/answers/events.js';
import { TargetScore } from '../contracts/learners/goals.js';
import { Attempt, BatchResult } from '../contracts/responses/attempts.js';
import { Erasure } from '../contracts/responses/erasures.js';
import { examples } from '../contracts/responses/examples.js';
import { Goal } from '../contracts/responses/learners.js';
import {
  Explanation,
  LearnerSkill,
  Mastery,
  SkillMastery,
  Velocity,
} from '../contracts/responses/mastery.js';
import * as words from '../contracts/responses/openapi-texts.js';
import { GoalTracking, Practice, Prediction, WhatIf } from '../contracts/responses/predictions.js';
import { commonErrors, errorSchema, routeResponses } from '../contracts/responses/route-responses.js';
import { ErrorObject } from '../contracts/responses/shared-schemas.js';
import { Parameters, Skill } from '../contracts/responses/skills.js';
import * as webhooks from '../contracts/responses/webhooks.js';
import { Id, StoredId } from '../contracts/schema/ids.js';
import { type WebhookType, webhookTypes } from '../contracts/webhooks/webhook-events.js';
import { Activity, Actor, Statement } from '../contracts/xapi/statement.js';
import { type ErrorCode, errorTable } from '../errors.js';
import { distinct, groupBy } from '../lists.js';
import { version } from '../version.js';
import { createsIds, type Route } from './route.js';
import { jsonMediaType } from './route-rules.js';

const namedSchemas = {
  ...{ Id, StoredId, LearningEvent, LearningEventResult, TargetScore, ErrorObject, Skill, LearnerSkill },
  ...{ Parameters, Explanation, Attempt, Goal, GoalTracking, Prediction, Practice, BatchResult },
  ...{ SkillMastery, Mastery, Velocity, WhatIf, Erasure, Webhook: webhooks.Webhook },
  ...{ Actor, Activity, Statement },
};
const nameByText = new Map(
  Object.entries(namedSchemas).map(([name, schema]) => [JSON.stringify(schema), name]),
);

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** Replaces named schemas, except `self`, by references. The JSON identifies a schema. */
const withReferences = (schema: TSchema, self?: TSchema): unknown =>
  JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => {
      if (key.startsWith('~')) return undefined;
      const name = typeof value === 'object' ? nameByText.get(JSON.stringify(value)) : undefined;
      return name === undefined || value === self ? value : ref('schemas', name);
    }),
  );

const mapEntries = <Value>(
  table: Readonly<Record<string, Value>>,
  of: (value: Value, name: string) => unknown,
) => Object.fromEntries(Object.entries(table).map(([name, value]) => [name, of(value, name)]));

const getStatus = (code: ErrorCode): number => errorTable[code].status;

const errorHeaders: Partial<Record<ErrorCode, string>> = {
  UNAUTHORIZED: 'WWW-Authenticate',
  METHOD_NOT_ALLOWED: 'Allow',
  RATE_LIMITED: 'Retry-After',
  UNAVAILABLE: 'Retry-After',
};
const commonHeaders = ['X-Request-Id', 'Cache-Control'];
const requiredHeaders = [...commonHeaders, 'Retry-After', 'WWW-Authenticate', 'Allow', 'ETag'];
const quotaHeaders = ['RateLimit-Policy', 'RateLimit'];

const buildHeaders = (names: readonly string[]) =>
  Object.fromEntries([...commonHeaders, ...names].map((name) => [name, ref('headers', name)]));

const buildContent = (schema?: TSchema | null, example?: unknown) =>
  schema && {
    content: {
      [(schema as { contentMediaType?: string }).contentMediaType ?? jsonMediaType]: {
        schema: withReferences(schema),
        example,
      },
    },
  };

const buildErrorResponse = (codes: readonly ErrorCode[], body?: TSchema, more: readonly string[] = []) => ({
  description: codes
    .map((code) => `${code}: ${words.errorDescriptions[code]} Safe to retry: ${errorTable[code].retry}.`)
    .join('\n\n'),
  headers: buildHeaders([...quotaHeaders, ...codes.flatMap((code) => errorHeaders[code] ?? []), ...more]),
  ...(body ? buildContent(body) : buildContent(errorSchema(codes), buildErrorExample(codes[0]))),
  'x-retry': Object.fromEntries(codes.map((code) => [code, errorTable[code].retry])),
});

const buildErrorExample = (code?: ErrorCode) =>
  code && { success: false, error: { code, message: words.errorDescriptions[code] } };

function buildParameters({ method, path, query }: Route, headers: readonly string[]) {
  const schema = withReferences(createsIds(method) ? Id : StoredId);
  const ids = (path.match(/(?<=:)\w+/g) ?? []).map((name) => ({
    ...{ name, in: 'path', required: true, schema, example: words.pathExamples[name] },
  }));
  const queries = Object.entries<TSchema>(query?.schema.properties ?? {}).map(([name, schema]) => ({
    ...{ name, in: 'query', schema: withReferences(schema) },
    required: !Type.IsOptional(schema) && !('default' in schema),
  }));
  const known = ['X-Request-Id', ...headers].filter((name) => name in words.requestHeaders);
  return [...ids, ...queries, ...known.map((name) => ref('parameters', name))];
}

const buildRequestBody = ({ body }: Route) =>
  body && {
    requestBody: {
      required: body.optional !== true,
      description: `At most ${body.limit / 1024} KiB.`,
      content: Object.assign(
        {},
        ...Object.values(body.content).map((schema) => buildContent(schema)?.content),
      ),
    },
  };

function describeRoute({ method, path, scope, body, protocol }: Route) {
  const name = `${method} ${path}`;
  const responses = routeResponses[name];
  const operation = (words.operations as Readonly<Record<string, words.Operation>>)[name];
  if (responses === undefined || operation === undefined) throw new Error(`route ${name} has no description`);
  const errors = [...commonErrors({ scope, body }), ...responses.errors];
  const [id, summary, ...own] = operation;
  const headers = [
    ...own,
    ...Object.keys(protocol?.headers ?? {}),
    ...(body?.encodings.includes('gzip') ? ['Content-Encoding'] : []),
    ...(errors.includes('PRECONDITION_FAILED') ? ['If-Match'] : []),
  ];
  return { name, id, summary, bodies: responses.bodies, errors, headers };
}

function buildResponses({ scope, protocol }: Route, described: ReturnType<typeof describeRoute>) {
  const { name, bodies, errors, headers } = described;
  const codesBy = groupBy(errors, protocol?.getStatus ?? getStatus);
  const sent = headers.filter((header) => header in words.responseHeaders);
  const buildResponse = (status: number) => {
    const codes = codesBy.get(status);
    const schema = codes && protocol ? ErrorObject : bodies[status];
    if (codes) return schema ? buildErrorResponse(codes, schema, sent) : ref('responses', codes.join('.'));
    return {
      description: STATUS_CODES[status],
      headers: buildHeaders([...(scope === null ? [] : quotaHeaders), ...sent]),
      ...buildContent(schema, status < 300 ? examples[name] : undefined),
    };
  };
  const statuses = distinct([...Object.keys(bodies).map(Number), ...codesBy.keys()]);
  return Object.fromEntries(statuses.map((status) => [status, buildResponse(status)]));
}

function buildOperation(route: Route) {
  const { path, scope, protocol } = route;
  const described = describeRoute(route);
  const security = scope === null ? [] : (protocol?.security ?? ['ApiKey']);
  const [, area = ''] = /^\/(?:api\/v1\/)?([a-z]+)/.exec(path) ?? [];
  return {
    ...{ operationId: described.id, summary: described.summary },
    tags: [scope === null ? 'service' : area],
    ...(scope !== null && {
      description: `Required scope: ${[scope].flat().join(' or ')}.`,
      'x-scope': scope,
    }),
    security: security.map((scheme) => ({ [scheme]: [] })),
    parameters: buildParameters(route, described.headers),
    ...buildRequestBody(route),
    responses: buildResponses(route, described),
  };
}

const buildWebhook = (type: WebhookType) => ({
  ...{ operationId: type, summary: webhooks.webhookDescriptions[type].summary, tags: ['webhooks'] },
  parameters: Object.entries(words.webhookHeaders).map(([name, description]) => ({
    ...{ name, in: 'header', required: true, description, schema: { type: 'string' } },
  })),
  requestBody: buildContent(webhooks.createMessageSchema(type), webhooks.createMessageExample(type)),
  responses: {
    '2XX': { description: 'The message was received.' },
    410: { description: 'The endpoint no longer exists. Skilltrace disables the webhook.' },
    default: { description: 'The message was not received; Skilltrace sends it again.' },
  },
});

/** JSON omits its undefined fields. @throws Error for an undescribed route */
export function buildOpenapi(routes: readonly Route[]) {
  const enveloped = routes.filter(({ protocol }) => !protocol).map((route) => describeRoute(route).errors);
  const sets = enveloped.flatMap((errors) => [...groupBy(errors, getStatus).values()]);
  const single = (Object.keys(errorTable) as ErrorCode[]).map((code) => [code]);
  const paths = groupBy(routes, ({ path }) => path.replace(/:(\w+)/g, '{$1}'));
  const byMethod = (here: readonly Route[]) =>
    here.map((one) => [one.method.toLowerCase(), buildOperation(one)]);
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
    webhooks: Object.fromEntries(webhookTypes.map((type) => [type, { post: buildWebhook(type) }])),
    components: {
      schemas: mapEntries(namedSchemas, (schema) => withReferences(schema, schema)),
      responses: Object.fromEntries(
        [...single, ...sets].map((codes) => [codes.join('.'), buildErrorResponse(codes)]),
      ),
      parameters: mapEntries(words.requestHeaders, ({ description, ...rest }, name) => ({
        ...{ name, in: 'header', description, schema: { type: 'string', ...rest } },
      })),
      headers: mapEntries(words.responseHeaders, (description, name) => ({
        ...{ description, required: requiredHeaders.includes(name), schema: { type: 'string' } },
      })),
      securitySchemes: words.securitySchemes,
    },
  };
}
