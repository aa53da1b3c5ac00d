import Type, { type TProperties, type TSchema } from 'typebox';
import type { ErrorCode } from '../../errors.js';
import { LearningEventResult } from '../answers/events.js';
import { nullable } from '../schema/validate.js';
import { XapiMapping } from '../xapi/mapping.js';
import { Uuid } from '../xapi/statement.js';
import * as access from './access.js';
import * as attempts from './attempts.js';
import * as classes from './classes.js';
import * as erasures from './erasures.js';
import * as groups from './groups.js';
import * as learners from './learners.js';
import * as mastery from './mastery.js';
import * as models from './models.js';
import * as predictions from './predictions.js';
import * as settings from './settings.js';
import { Amount, Count, ErrorObject, namedFields } from './shared-schemas.js';
import * as skills from './skills.js';
import * as statistics from './statistics.js';
import * as webhooks from './webhooks.js';

const check = { status: Type.Enum(['ok', 'failing']), reason: Type.Optional(Type.String()) };

const health = (status: TSchema) =>
  Type.Object({
    status,
    version: Type.String(),
    ...namedFields(Count, 'uptime_seconds', 'idempotency_window_seconds', 'idempotency_min_window_seconds'),
    checks: Type.Object({
      ...namedFields(Type.Object(check), 'redis', 'clickhouse'),
      workers: Type.Object({ ...check, ...namedFields(Count, 'threads', 'waiting') }),
      pipeline: Type.Object({
        ...check,
        ...namedFields(nullable(Count), 'outbox_length', 'erasures_due', 'journal_length', 'parked'),
        oldest_pending_seconds: nullable(Amount),
      }),
    }),
  });

const probe = (status: string) =>
  Type.Object({ status: Type.Literal(status), reasons: Type.Array(Type.String()) });

interface RouteResponses {
  /** By status; null: no body. Errors only if their body differs. Texts name their contentMediaType. */
  readonly bodies: Readonly<Record<number, TSchema | null>>;
  /** In addition to `commonErrors`. */
  readonly errors: readonly ErrorCode[];
}

/** Repeated headers and invalid escapes are rejected everywhere. */
export const commonErrors = (route: { readonly scope: unknown; readonly body: unknown }): ErrorCode[] => [
  'INVALID_REQUEST',
  'INTERNAL',
  ...(route.scope === null ? [] : (['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'UNAVAILABLE'] as const)),
  ...(route.body === null ? [] : (['UNSUPPORTED_MEDIA_TYPE', 'PAYLOAD_TOO_LARGE'] as const)),
];

const successSchema = (schema: TSchema) =>
  Type.Object({ success: Type.Literal(true), data: schema, message: Type.Optional(Type.String()) });

export const errorSchema = (codes: readonly ErrorCode[], more: TProperties = {}) =>
  Type.Object({
    success: Type.Literal(false),
    error: Type.Object({ ...ErrorObject.properties, code: Type.Enum([...codes]) }),
    ...more,
  });

const withoutEnvelope = (bodies: RouteResponses['bodies'], ...errors: ErrorCode[]): RouteResponses => ({
  bodies,
  errors,
});

const withEnvelope =
  (status: number) =>
  (schema: TSchema, ...errors: ErrorCode[]): RouteResponses =>
    withoutEnvelope({ [status]: successSchema(schema) }, ...errors);
const ok = withEnvelope(200);
const created = withEnvelope(201);
const accepted = withEnvelope(202);

const countingErrors = ['IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED'] as const;

const responses = {
  'POST /api/v1/track-answer': ok(LearningEventResult, 'CONFLICT', ...countingErrors),
  'POST /api/v1/track-answers': withoutEnvelope({
    200: successSchema(attempts.BatchResult),
    207: successSchema(attempts.BatchResult),
  }),
  'GET /api/v1/predictions/:user_id': ok(predictions.Prediction, 'USER_NOT_FOUND'),
  'POST /api/v1/predictions': ok(predictions.ClassPredictions),
  'POST /api/v1/predictions/:user_id/what-if': ok(predictions.WhatIf, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'POST /api/v1/next-items/:user_id': ok(predictions.NextItems),
  'GET /api/v1/mastery/:user_id': ok(mastery.Mastery, 'USER_NOT_FOUND'),
  'POST /api/v1/mastery': ok(mastery.ClassMastery, 'LIMIT_EXCEEDED'),
  'GET /api/v1/mastery/:user_id/:skill_id': ok(mastery.SkillMastery, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id/:skill_id/history': ok(
    attempts.SkillAnswerPage,
    'USER_NOT_FOUND',
    'SKILL_NOT_FOUND',
  ),
  'GET /api/v1/velocity/:user_id': ok(mastery.Velocity, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/goals/:user_id': ok(learners.Goal, 'GOAL_NOT_FOUND'),
  'PUT /api/v1/goals/:user_id': ok(learners.Goal, 'PRECONDITION_FAILED'),
  'DELETE /api/v1/goals/:user_id': ok(learners.DeletedGoal, 'GOAL_NOT_FOUND', 'PRECONDITION_FAILED'),
  'GET /api/v1/skills': ok(skills.SkillPage),
  'GET /api/v1/skills/:skill_id': ok(skills.Skill, 'SKILL_NOT_FOUND'),
  'PUT /api/v1/skills/:skill_id': ok(skills.Skill, 'PRECONDITION_FAILED', 'LIMIT_EXCEEDED'),
  'DELETE /api/v1/skills/:skill_id': ok(
    ...([skills.DeletedSkill, 'SKILL_NOT_FOUND', 'CONFLICT', 'PRECONDITION_FAILED'] as const),
  ),
  'GET /api/v1/learners': ok(learners.LearnerPage),
  'GET /api/v1/groups': ok(groups.GroupPage),
  'GET /api/v1/groups/:group_id': ok(groups.Group, 'NOT_FOUND'),
  'PUT /api/v1/groups/:group_id': ok(groups.Group, 'LIMIT_EXCEEDED'),
  'DELETE /api/v1/groups/:group_id': ok(groups.DeletedGroup, 'NOT_FOUND'),
  'GET /api/v1/groups/:group_id/skills': ok(classes.GroupSkills, 'NOT_FOUND'),
  'GET /api/v1/groups/:group_id/summary': ok(classes.GroupSummary, 'NOT_FOUND'),
  'POST /api/v1/groups/:group_id/members': ok(groups.ChangedMembers, 'NOT_FOUND', 'LIMIT_EXCEEDED'),
  'GET /api/v1/learners/:user_id/profile': ok(groups.Profile, 'USER_NOT_FOUND'),
  'PUT /api/v1/learners/:user_id/profile': ok(groups.Profile),
  'POST /api/v1/learners/profiles': ok(groups.Profiles),
  'GET /api/v1/skills/:skill_id/statistics': ok(statistics.SkillStatistics, 'SKILL_NOT_FOUND'),
  'GET /api/v1/skills/:skill_id/items': ok(statistics.SkillItemPage, 'SKILL_NOT_FOUND'),
  'GET /api/v1/skill-statistics': ok(statistics.SkillStatisticsPage),
  'GET /api/v1/learners/:user_id/attempts': ok(attempts.AttemptPage, 'USER_NOT_FOUND'),
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ok(
    ...([attempts.RetractedAttempt, 'USER_NOT_FOUND', 'NOT_FOUND', 'TOO_LATE'] as const),
  ),
  'GET /api/v1/learners/:user_id/export': withoutEnvelope({ 200: learners.ExportLines }, 'USER_NOT_FOUND'),
  'DELETE /api/v1/learners/:user_id': accepted(erasures.AcceptedErasure, 'USER_NOT_FOUND'),
  'GET /api/v1/erasures': ok(erasures.ErasurePage),
  'GET /api/v1/erasures/:erasure_id': ok(erasures.Erasure, 'NOT_FOUND'),
  'GET /api/v1/model/versions': ok(models.ModelVersionPage),
  'GET /api/v1/model/versions/:version': ok(models.ModelVersion, 'NOT_FOUND'),
  'GET /api/v1/model/reliability': ok(models.Reliability),
  'GET /api/v1/model/coverage': ok(models.Coverage),
  'GET /api/v1/key': ok(access.OwnKey),
  'GET /api/v1/keys': ok(access.KeyPage),
  'POST /api/v1/keys': created(access.CreatedKey, 'LIMIT_EXCEEDED'),
  'PATCH /api/v1/keys/:key_id': ok(access.Key, 'NOT_FOUND', 'CONFLICT'),
  'DELETE /api/v1/keys/:key_id': ok(access.Key, 'NOT_FOUND'),
  'POST /api/v1/model/rollback': ok(models.ActiveVersion, 'NOT_FOUND', 'CONFLICT'),
  'GET /api/v1/parked': ok(access.ParkedPage),
  'POST /api/v1/parked/redrive': ok(access.RedriveResult),
  'GET /api/v1/audits': ok(access.LastAudit),
  'POST /api/v1/audits': accepted(access.StartedAudit, 'CONFLICT'),
  'GET /api/v1/activity': ok(access.ActivityPage),
  'GET /api/v1/deployment': ok(access.Deployment),
  'POST /api/v1/webhooks': created(webhooks.WebhookWithSecret, 'LIMIT_EXCEEDED'),
  'GET /api/v1/webhooks': ok(webhooks.WebhookPage),
  'GET /api/v1/webhooks/:webhook_id': ok(webhooks.Webhook, 'WEBHOOK_NOT_FOUND'),
  'PATCH /api/v1/webhooks/:webhook_id': ok(webhooks.Webhook, 'WEBHOOK_NOT_FOUND', 'CONFLICT'),
  'DELETE /api/v1/webhooks/:webhook_id': ok(webhooks.DeletedWebhook, 'WEBHOOK_NOT_FOUND'),
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': ok(
    ...([webhooks.WebhookWithSecret, 'WEBHOOK_NOT_FOUND', 'LIMIT_EXCEEDED'] as const),
  ),
  'POST /api/v1/webhooks/:webhook_id/test': accepted(
    ...([webhooks.SentMessage, 'WEBHOOK_NOT_FOUND', 'CONFLICT'] as const),
  ),
  'GET /api/v1/webhooks/:webhook_id/deliveries': ok(webhooks.DeliveryPage, 'WEBHOOK_NOT_FOUND'),
  'POST /api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver': accepted(
    ...([webhooks.SentMessage, 'WEBHOOK_NOT_FOUND', 'NOT_FOUND', 'CONFLICT'] as const),
  ),
  'GET /api/v1/settings': ok(settings.Settings),
  'PUT /api/v1/settings': accepted(settings.Settings),
  'GET /api/v1/xapi-mapping': ok(XapiMapping),
  'PUT /api/v1/xapi-mapping': ok(XapiMapping, 'PRECONDITION_FAILED'),
  'POST /xapi/statements': withoutEnvelope({ 200: Type.Array(Uuid) }, ...countingErrors, 'TOO_LATE'),
  'PUT /xapi/statements': withoutEnvelope({ 204: null }, ...countingErrors, 'TOO_LATE'),
  'GET /xapi/about': withoutEnvelope({ 200: Type.Object({ version: Type.Array(Type.String()) }) }),
  'GET /api/v1/live': withoutEnvelope({ 200: access.LiveEvents }),
  'GET /api/v1/live/history': ok(access.LiveHistory),
  'GET /api/v1/health': withoutEnvelope(
    {
      200: successSchema(health(Type.Enum(['ok', 'degraded']))),
      503: errorSchema(['UNAVAILABLE'], { data: health(Type.Literal('down')) }),
    },
    'UNAVAILABLE',
  ),
  'GET /livez': withoutEnvelope({ 200: probe('ok'), 503: probe('failing') }),
  'GET /readyz': withoutEnvelope({ 200: probe('ready'), 503: probe('not ready') }),
  'GET /metrics': withoutEnvelope({
    200: Type.String({ pattern: '^# HELP ', contentMediaType: 'text/plain' }),
  }),
  'GET /openapi.json': withoutEnvelope({
    200: Type.Record(Type.String(), Type.Unknown(), { description: 'OpenAPI 3.1' }),
  }),
} satisfies Readonly<Record<string, RouteResponses>>;

export type RouteName = keyof typeof responses;
export const routeResponses: Readonly<Record<string, RouteResponses>> = responses;
