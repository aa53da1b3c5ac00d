/** What each route may answer: the bodies by status, and the error codes. */
import Type, { type TProperties, type TSchema } from 'typebox';
import type { ErrorCode } from '../../errors.js';
import { LearningEventResult } from '../events.js';
import * as learners from './learners.js';
import { Amount, Count, ErrorObject, each, nullable } from './parts.js';
import { ClassPredictions, Prediction, WhatIf } from './predictions.js';

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
  /** Schemas of whole bodies by status; statuses of errors only where they have a body of their own. */
  readonly bodies: Readonly<Record<number, TSchema>>;
  readonly errors: readonly ErrorCode[];
}

/** @param more what stands beside the error */
const errorAnswer = (more: TProperties = {}) =>
  Type.Object({ success: Type.Literal(false), error: ErrorObject, ...more });

const successAnswer = (data: TSchema) =>
  Type.Object({ success: Type.Literal(true), data, message: Type.Optional(Type.String()) });

/** Every response with an error, unless a route has one of its own for the status. */
export const ErrorAnswer = errorAnswer();

/** Repeated headers and bad escapes are refused on any route. */
const keyless: readonly ErrorCode[] = ['INVALID_REQUEST', 'INTERNAL'];
const keyed: readonly ErrorCode[] = [...keyless, 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'UNAVAILABLE'];
const withBody: readonly ErrorCode[] = ['UNSUPPORTED_MEDIA_TYPE', 'PAYLOAD_TOO_LARGE'];

const ok = (data: TSchema, ...errors: ErrorCode[]): RouteAnswers => ({
  bodies: { 200: successAnswer(data) },
  errors: [...keyed, ...errors],
});

/** By method and path as the table of routes has them. */
export const routeAnswers: Readonly<Record<string, RouteAnswers>> = {
  'POST /api/v1/track-answer': ok(
    LearningEventResult,
    ...withBody,
    'CONFLICT',
    'IDEMPOTENCY_KEY_REUSED',
    'LIMIT_EXCEEDED',
  ),
  'POST /api/v1/track-answers': {
    bodies: { 200: successAnswer(learners.BatchResult), 207: successAnswer(learners.BatchResult) },
    errors: [...keyed, ...withBody],
  },
  'GET /api/v1/predictions/:user_id': ok(Prediction, 'USER_NOT_FOUND'),
  'POST /api/v1/predictions': ok(ClassPredictions, ...withBody),
  'POST /api/v1/predictions/:user_id/what-if': ok(WhatIf, ...withBody, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id': ok(learners.Mastery, 'USER_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id/:skill_id': ok(learners.SkillMastery, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/velocity/:user_id': ok(learners.Velocity, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/goals/:user_id': ok(learners.Goal, 'GOAL_NOT_FOUND'),
  'PUT /api/v1/goals/:user_id': ok(learners.Goal, ...withBody, 'PRECONDITION_FAILED'),
  'DELETE /api/v1/goals/:user_id': ok(learners.DeletedGoal, 'GOAL_NOT_FOUND', 'PRECONDITION_FAILED'),
  'GET /api/v1/skills': ok(learners.SkillPage),
  'GET /api/v1/skills/:skill_id': ok(learners.Skill, 'SKILL_NOT_FOUND'),
  'PUT /api/v1/skills/:skill_id': ok(learners.Skill, ...withBody, 'PRECONDITION_FAILED', 'LIMIT_EXCEEDED'),
  'DELETE /api/v1/skills/:skill_id': ok(
    learners.DeletedSkill,
    'SKILL_NOT_FOUND',
    'CONFLICT',
    'PRECONDITION_FAILED',
  ),
  'GET /api/v1/learners/:user_id/attempts': ok(learners.AttemptPage, 'USER_NOT_FOUND'),
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ok(
    learners.TakenBack,
    'USER_NOT_FOUND',
    'NOT_FOUND',
    'TOO_LATE',
  ),
  'GET /api/v1/learners/:user_id/export': {
    bodies: { 200: learners.ExportLines },
    errors: [...keyed, 'USER_NOT_FOUND'],
  },
  'DELETE /api/v1/learners/:user_id': {
    bodies: { 202: successAnswer(learners.BegunErasure) },
    errors: [...keyed, 'USER_NOT_FOUND'],
  },
  'GET /api/v1/erasures/:erasure_id': ok(learners.Erasure, 'NOT_FOUND'),
  'GET /api/v1/health': {
    bodies: {
      200: successAnswer(health(Type.Enum(['ok', 'degraded']))),
      503: errorAnswer({ data: health(Type.Literal('down')) }),
    },
    errors: [...keyless, 'UNAVAILABLE'],
  },
  'GET /livez': { bodies: { 200: probe('ok'), 503: probe('failing') }, errors: keyless },
  'GET /readyz': { bodies: { 200: probe('ready'), 503: probe('not ready') }, errors: keyless },
  // Prometheus text format.
  'GET /metrics': { bodies: { 200: Type.String({ pattern: '^# HELP ' }) }, errors: keyless },
};
