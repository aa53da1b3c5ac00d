import { STATUS_CODES } from 'node:http';
import Type, { type TSchema } from 'typebox';
import { LearningEvent, LearningEventResult } from '../contracts/events.js';
import { TargetScore } from '../contracts/goals.js';
import { Id } from '../contracts/ids.js';
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
import * as words from '../contracts/responses/operations.js';
import { GoalTracking, Practice, Prediction, WhatIf } from '../contracts/responses/predictions.js';
import { commonErrors, errorAnswerOf, routeAnswers } from '../contracts/responses/routes.js';
import { ErrorObject } from '../contracts/responses/shared-schemas.js';
import { Parameters, Skill } from '../contracts/responses/skills.js';
import * as webhooks from '../contracts/responses/webhooks.js';
import { type WebhookType, webhookTypes } from '../contracts/webhook-events.js';
import { Activity, Actor, Statement } from '../contracts/xapi/statement.js';
import { type ErrorCode, errorTable } from '../errors.js';
import { distinct, groupedBy } from '../lists.js';
import { version } from '../version.js';
import type { Route } from './route.js';
import { json } from './rules.js';

const named = {
  ...{ Id, LearningEvent, LearningEventResult, TargetScore, ErrorObject, Skill, LearnerSkill, Parameters },
  ...{ Explanation, Attempt, Goal, GoalTracking, Prediction, Practice, BatchResult, SkillMastery, Mastery },
  ...{ Velocity, WhatIf, Erasure, Webhook: webhooks.Webhook, Actor, Activity, Statement },
};
const nameByText = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]));

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** Replaces named schemas, except `self`, by references. The JSON identifies a schema. */
const plain = (schema: TSchema, self?: TSchema): unknown =>
  JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => {
      if (key.startsWith('~')) return undefined;
      const name = typeof value === 'object' ? nameByText.get(JSON.stringify(value)) : undefined;
      return name === undefined || value === self ? value : ref('schemas', name);
    }),
  );

const mapped = <Value>(table: Readonly<Record<string, Value>>, of: (value: Value, name: string) => unknown) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, of(value, name)]));

const statusOf = (code: ErrorCode): number => errorTable[code].status;

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

const contentOf = (schema?: TSchema | null, example?: unknown) =>
  schema && {
    content: {
      [(schema as { contentMediaType?: string }).contentMediaType ?? json]: {
        schema: plain(schema),
        example,
      },
    },
  };

const errorAnswer = (codes: readonly ErrorCode[], body?: TSchema, more: readonly string[] = []) => ({
  description: codes
    .map((code) => `${code}: ${words.errorMeanings[code]}. Safe to retry: ${errorTable[code].retry}.`)
    .join('\n\n'),
  headers: headersOf([...quotaHeaders, ...codes.flatMap((code) => ofError[code] ?? []), ...more]),
  ...(body ? contentOf(body) : contentOf(errorAnswerOf(codes), exampleOf(codes[0]))),
  'x-retry': Object.fromEntries(codes.map((code) => [code, errorTable[code].retry])),
});

const exampleOf = (code?: ErrorCode) =>
  code && { success: false, error: { code, message: words.errorMeanings[code] } };

function parametersOf({ path, query }: Route, headers: readonly string[]) {
  const ids = (path.match(/(?<=:)\w+/g) ?? []).map((name) => ({
    ...{ name, in: 'path', required: true, schema: plain(Id), example: words.pathExamples[name] },
  }));
  const queries = Object.entries<TSchema>(query?.schema.properties ?? {}).map(([name, schema]) => ({
    ...{ name, in: 'query', schema: plain(schema) },
    required: !Type.IsOptional(schema) && !('default' in schema),
  }));
  const known = ['X-Request-Id', ...headers].filter((name) => name in words.requestHeaders);
  return [...ids, ...queries, ...known.map((name) => ref('parameters', name))];
}

const bodyOf = ({ body }: Route) =>
  body && {
    requestBody: {
      required: body.optional !== true,
      description: `At most ${body.limit / 1024} KiB`,
      content: Object.assign({}, ...Object.values(body.content).map((schema) => contentOf(schema)?.content)),
    },
  };

function saidOf({ method, path, scope, body, protocol }: Route) {
  const name = `${method} ${path}`;
  const answers = routeAnswers[name];
  const operation = (words.operations as Readonly<Record<string, words.Operation>>)[name];
  if (answers === undefined || operation === undefined) throw new Error(`nothing describes ${name}`);
  const errors = [...commonErrors({ scope, body }), ...answers.errors];
  const [id, summary, ...own] = operation;
  const headers = [
    ...own,
    ...Object.keys(protocol?.headers ?? {}),
    ...(body?.encodings.includes('gzip') ? ['Content-Encoding'] : []),
    ...(errors.includes('PRECONDITION_FAILED') ? ['If-Match'] : []),
  ];
  return { name, id, summary, bodies: answers.bodies, errors, headers };
}

function responsesOf({ scope, protocol }: Route, said: ReturnType<typeof saidOf>) {
  const { name, bodies, errors, headers } = said;
  const codesBy = groupedBy(errors, protocol?.statusOf ?? statusOf);
  const sent = headers.filter((header) => header in words.answerHeaders);
  const answerOf = (status: number) => {
    const codes = codesBy.get(status);
    const schema = codes && protocol ? ErrorObject : bodies[status];
    if (codes) return schema ? errorAnswer(codes, schema, sent) : ref('responses', codes.join('.'));
    return {
      description: STATUS_CODES[status],
      headers: headersOf([...(scope === null ? [] : quotaHeaders), ...sent]),
      ...contentOf(schema, status < 300 ? examples[name] : undefined),
    };
  };
  const statuses = distinct([...Object.keys(bodies).map(Number), ...codesBy.keys()]);
  return Object.fromEntries(statuses.map((status) => [status, answerOf(status)]));
}

function operationOf(route: Route) {
  const { path, scope, protocol } = route;
  const said = saidOf(route);
  const security = scope === null ? [] : (protocol?.security ?? ['ApiKey']);
  const [, area = ''] = /^\/(?:api\/v1\/)?([a-z]+)/.exec(path) ?? [];
  return {
    ...{ operationId: said.id, summary: said.summary },
    tags: [scope === null ? 'service' : area],
    ...(scope !== null && { description: `Scope: ${[scope].flat().join(' or ')}`, 'x-scope': scope }),
    security: security.map((scheme) => ({ [scheme]: [] })),
    parameters: parametersOf(route, said.headers),
    ...bodyOf(route),
    responses: responsesOf(route, said),
  };
}

const sendingOf = (type: WebhookType) => ({
  ...{ operationId: type, summary: webhooks.webhookNotes[type].summary, tags: ['webhooks'] },
  parameters: Object.entries(words.webhookHeaders).map(([name, description]) => ({
    ...{ name, in: 'header', required: true, description, schema: { type: 'string' } },
  })),
  requestBody: contentOf(webhooks.webhookMessage(type), webhooks.webhookExample(type)),
  responses: {
    '2XX': { description: 'Received' },
    410: { description: 'Disables the endpoint' },
    default: { description: 'Not received: it is sent again' },
  },
});

/** JSON omits its undefined fields. @throws Error for an undescribed route */
export function openapiOf(routes: readonly Route[]) {
  const enveloped = routes.filter(({ protocol }) => !protocol).map((route) => saidOf(route).errors);
  const sets = enveloped.flatMap((errors) => [...groupedBy(errors, statusOf).values()]);
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
    webhooks: Object.fromEntries(webhookTypes.map((type) => [type, { post: sendingOf(type) }])),
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
