/** What each route may answer: the bodies by status, and the error codes. */
import Type, { type TProperties, type TSchema } from 'typebox';
import type { ErrorCode } from '../../errors.js';
import { LearningEventResult } from '../events.js';
import { XapiMapping } from '../xapi/mapping.js';
import { Uuid } from '../xapi/statement.js';
import * as data from './bodies.js';
import { Amount, Count, each, nullable } from './bodies.js';
import * as webhooks from './webhooks.js';

const check = { status: Type.Enum(['ok', 'failing']), reason: Type.Optional(Type.String()) };

/** @param status as it is in the answer that it belongs to */
const health = (status: TSchema) =>
  Type.Object({
    status,
    version: Type.String(),
    ...each(Count, 'uptime_seconds', 'idempotency_window_seconds', 'idempotency_min_window_seconds'),
    checks: Type.Object({
      ...each(Type.Object(check), 'redis', 'clickhouse'),
      workers: Type.Object({ ...check, ...each(Count, 'threads', 'waiting') }),
      pipeline: Type.Object({
        ...check,
        ...each(nullable(Count), 'outbox_length', 'erasures_due', 'journal_length', 'parked'),
        oldest_pending_seconds: nullable(Amount),
      }),
    }),
  });

const probe = (status: string) =>
  Type.Object({ status: Type.Literal(status), reasons: Type.Array(Type.String()) });

interface RouteAnswers {
  /**
   * Schemas of whole bodies by status, null for none; statuses of errors only where they have a body of their own. A text names
   * its type as contentMediaType, all else is JSON.
   */
  readonly bodies: Readonly<Record<number, TSchema | null>>;
  readonly errors: readonly ErrorCode[];
}

/** @param more what stands beside the error */
const errorAnswer = (more: TProperties = {}) =>
  Type.Object({ success: Type.Literal(false), error: data.ErrorObject, ...more });

const successAnswer = (schema: TSchema) =>
  Type.Object({ success: Type.Literal(true), data: schema, message: Type.Optional(Type.String()) });

/** Every response with an error, unless a route has one of its own for the status. */
export const errorAnswerOf = (codes: readonly ErrorCode[]) =>
  Type.Object({
    success: Type.Literal(false),
    error: Type.Object({ ...data.ErrorObject.properties, code: Type.Enum([...codes]) }),
  });

/** Repeated headers and bad escapes are refused on any route. */
const keyless: readonly ErrorCode[] = ['INVALID_REQUEST', 'INTERNAL'];
const keyed: readonly ErrorCode[] = [...keyless, 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'UNAVAILABLE'];
const withBody: readonly ErrorCode[] = ['UNSUPPORTED_MEDIA_TYPE', 'PAYLOAD_TOO_LARGE'];

const ok = (schema: TSchema, ...errors: ErrorCode[]): RouteAnswers => ({
  bodies: { 200: successAnswer(schema) },
  errors: [...keyed, ...errors],
});
/** @param status of success */
const as = (status: number, { bodies, errors }: RouteAnswers): RouteAnswers => ({
  ...{ bodies: { [status]: bodies[200] as TSchema }, errors },
});
const takes = (schema: TSchema, ...errors: ErrorCode[]): RouteAnswers => ok(schema, ...withBody, ...errors);

const counting: readonly ErrorCode[] = ['IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED', 'TOO_LATE'];
/** Errors without the envelope; there a reused id is 409. */
const ofXapi = (bodies: RouteAnswers['bodies']): RouteAnswers => {
  const errors = [400, 401, 403, 409, 413, 415, 422, 429, 500, 503].map((status) => [
    status,
    data.ErrorObject,
  ]);
  return {
    bodies: { ...bodies, ...Object.fromEntries(errors) },
    errors: [...keyed, ...withBody, ...counting],
  };
};

const answers = {
  'POST /api/v1/track-answer': takes(
    LearningEventResult,
    ...(['CONFLICT', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED'] as const),
  ),
  'POST /api/v1/track-answers': {
    bodies: { 200: successAnswer(data.BatchResult), 207: successAnswer(data.BatchResult) },
    errors: [...keyed, ...withBody],
  },
  'GET /api/v1/predictions/:user_id': ok(data.Prediction, 'USER_NOT_FOUND'),
  'POST /api/v1/predictions': takes(data.ClassPredictions),
  'POST /api/v1/predictions/:user_id/what-if': takes(data.WhatIf, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id': ok(data.Mastery, 'USER_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id/:skill_id': ok(data.SkillMastery, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/velocity/:user_id': ok(data.Velocity, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/goals/:user_id': ok(data.Goal, 'GOAL_NOT_FOUND'),
  'PUT /api/v1/goals/:user_id': takes(data.Goal, 'PRECONDITION_FAILED'),
  'DELETE /api/v1/goals/:user_id': ok(data.DeletedGoal, 'GOAL_NOT_FOUND', 'PRECONDITION_FAILED'),
  'GET /api/v1/skills': ok(data.SkillPage),
  'GET /api/v1/skills/:skill_id': ok(data.Skill, 'SKILL_NOT_FOUND'),
  'PUT /api/v1/skills/:skill_id': takes(data.Skill, 'PRECONDITION_FAILED', 'LIMIT_EXCEEDED'),
  'DELETE /api/v1/skills/:skill_id': ok(
    data.DeletedSkill,
    ...(['SKILL_NOT_FOUND', 'CONFLICT', 'PRECONDITION_FAILED'] as const),
  ),
  'GET /api/v1/learners/:user_id/attempts': ok(data.AttemptPage, 'USER_NOT_FOUND'),
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ok(
    data.TakenBack,
    ...(['USER_NOT_FOUND', 'NOT_FOUND', 'TOO_LATE'] as const),
  ),
  'GET /api/v1/learners/:user_id/export': {
    bodies: { 200: data.ExportLines },
    errors: [...keyed, 'USER_NOT_FOUND'],
  },
  'DELETE /api/v1/learners/:user_id': as(202, ok(data.BegunErasure, 'USER_NOT_FOUND')),
  'GET /api/v1/erasures/:erasure_id': ok(data.Erasure, 'NOT_FOUND'),
  'POST /api/v1/webhooks': as(201, takes(webhooks.WebhookWithSecret, 'LIMIT_EXCEEDED')),
  'GET /api/v1/webhooks': ok(webhooks.WebhookPage),
  'GET /api/v1/webhooks/:webhook_id': ok(webhooks.Webhook, 'WEBHOOK_NOT_FOUND'),
  'PATCH /api/v1/webhooks/:webhook_id': takes(webhooks.Webhook, 'WEBHOOK_NOT_FOUND', 'CONFLICT'),
  'DELETE /api/v1/webhooks/:webhook_id': ok(webhooks.DeletedWebhook, 'WEBHOOK_NOT_FOUND'),
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': takes(
    webhooks.WebhookWithSecret,
    ...(['WEBHOOK_NOT_FOUND', 'LIMIT_EXCEEDED'] as const),
  ),
  'POST /api/v1/webhooks/:webhook_id/test': as(
    202,
    ok(webhooks.SentMessage, 'WEBHOOK_NOT_FOUND', 'CONFLICT'),
  ),
  'GET /api/v1/webhooks/:webhook_id/deliveries': ok(webhooks.DeliveryPage, 'WEBHOOK_NOT_FOUND'),
  'POST /api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver': as(
    202,
    ok(webhooks.SentMessage, 'WEBHOOK_NOT_FOUND', 'NOT_FOUND', 'CONFLICT'),
  ),
  'GET /api/v1/xapi-mapping': ok(XapiMapping),
  'PUT /api/v1/xapi-mapping': takes(XapiMapping, 'PRECONDITION_FAILED'),
  'POST /xapi/statements': ofXapi({ 200: Type.Array(Uuid) }),
  'PUT /xapi/statements': ofXapi({ 204: null }),
  'GET /xapi/about': {
    bodies: {
      ...{ 200: Type.Object({ version: Type.Array(Type.String()) }) },
      ...{ 400: data.ErrorObject, 500: data.ErrorObject },
    },
    errors: keyless,
  },
  'GET /api/v1/health': {
    bodies: {
      200: successAnswer(health(Type.Enum(['ok', 'degraded']))),
      503: errorAnswer({ data: health(Type.Literal('down')) }),
    },
    errors: [...keyless, 'UNAVAILABLE'],
  },
  'GET /livez': { bodies: { 200: probe('ok'), 503: probe('failing') }, errors: keyless },
  'GET /readyz': { bodies: { 200: probe('ready'), 503: probe('not ready') }, errors: keyless },
  'GET /metrics': {
    bodies: { 200: Type.String({ pattern: '^# HELP ', contentMediaType: 'text/plain' }) },
    errors: keyless,
  },
  'GET /openapi.json': {
    bodies: { 200: Type.Record(Type.String(), Type.Unknown(), { description: 'OpenAPI 3.1' }) },
    errors: keyless,
  },
} satisfies Readonly<Record<string, RouteAnswers>>;

/** Method and path as the table of routes has them. */
export type RouteName = keyof typeof answers;
export const routeAnswers: Readonly<Record<string, RouteAnswers>> = answers;
