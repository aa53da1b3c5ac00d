/** What each route may answer: the bodies by status, and the error codes. */
import type { TSchema } from 'typebox';
import type { ErrorCode } from '../../errors.js';
import { LearningEventResult } from '../events.js';
import {
  AttemptPage,
  BatchResult,
  BegunErasure,
  DeletedGoal,
  DeletedSkill,
  Erasure,
  ExportLines,
  Goal,
  Mastery,
  Skill,
  SkillMastery,
  SkillPage,
  TakenBack,
  Velocity,
} from './learners.js';
import { errorAnswer, successAnswer } from './parts.js';
import { ClassPredictions, Prediction, WhatIf } from './predictions.js';
import { Failing, Health, HealthDown, Live, MetricsText, NotReady, Ready } from './service.js';

export interface RouteAnswers {
  /** Schemas of whole bodies by status; statuses of errors only where they have a body of their own. */
  readonly bodies: Readonly<Record<number, TSchema>>;
  readonly errors: readonly ErrorCode[];
}

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
    bodies: { 200: successAnswer(BatchResult), 207: successAnswer(BatchResult) },
    errors: [...keyed, ...withBody],
  },
  'GET /api/v1/predictions/:user_id': ok(Prediction, 'USER_NOT_FOUND'),
  'POST /api/v1/predictions': ok(ClassPredictions, ...withBody),
  'POST /api/v1/predictions/:user_id/what-if': ok(WhatIf, ...withBody, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id': ok(Mastery, 'USER_NOT_FOUND'),
  'GET /api/v1/mastery/:user_id/:skill_id': ok(SkillMastery, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/velocity/:user_id': ok(Velocity, 'USER_NOT_FOUND', 'SKILL_NOT_FOUND'),
  'GET /api/v1/goals/:user_id': ok(Goal, 'GOAL_NOT_FOUND'),
  'PUT /api/v1/goals/:user_id': ok(Goal, ...withBody, 'PRECONDITION_FAILED'),
  'DELETE /api/v1/goals/:user_id': ok(DeletedGoal, 'GOAL_NOT_FOUND', 'PRECONDITION_FAILED'),
  'GET /api/v1/skills': ok(SkillPage),
  'GET /api/v1/skills/:skill_id': ok(Skill, 'SKILL_NOT_FOUND'),
  'PUT /api/v1/skills/:skill_id': ok(Skill, ...withBody, 'PRECONDITION_FAILED', 'LIMIT_EXCEEDED'),
  'DELETE /api/v1/skills/:skill_id': ok(DeletedSkill, 'SKILL_NOT_FOUND', 'CONFLICT', 'PRECONDITION_FAILED'),
  'GET /api/v1/learners/:user_id/attempts': ok(AttemptPage, 'USER_NOT_FOUND'),
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ok(
    TakenBack,
    'USER_NOT_FOUND',
    'NOT_FOUND',
    'TOO_LATE',
  ),
  'GET /api/v1/learners/:user_id/export': {
    bodies: { 200: ExportLines },
    errors: [...keyed, 'USER_NOT_FOUND'],
  },
  'DELETE /api/v1/learners/:user_id': {
    bodies: { 202: successAnswer(BegunErasure) },
    errors: [...keyed, 'USER_NOT_FOUND'],
  },
  'GET /api/v1/erasures/:erasure_id': ok(Erasure, 'NOT_FOUND'),
  'GET /api/v1/health': {
    bodies: { 200: successAnswer(Health), 503: errorAnswer({ data: HealthDown }) },
    errors: [...keyless, 'UNAVAILABLE'],
  },
  'GET /livez': { bodies: { 200: Live, 503: Failing }, errors: keyless },
  'GET /readyz': { bodies: { 200: Ready, 503: NotReady }, errors: keyless },
  'GET /metrics': { bodies: { 200: MetricsText }, errors: keyless },
};
