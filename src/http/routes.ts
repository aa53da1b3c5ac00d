/** Every call of the API, in one table. */
import type { Scope } from '../contracts/access.js';
import type { IfMatch } from '../contracts/preconditions.js';
import type { ApiError } from '../errors.js';

/** What a handler sees of a request that passed all checks before it. */
export interface Call {
  /** The caller's tenant; empty where the route asks for no key. */
  readonly tenant: string;
  /** Path parameters, decoded, in order. */
  readonly parameters: readonly string[];
  readonly query: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly mediaType: string;
  readonly idempotencyKey: string | null;
  /** Null unless a PUT or DELETE depends on a tag. */
  readonly ifMatch: IfMatch;
  /** @throws ClientGone */
  readonly stillWanted: () => void;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Sent in place of the body where it is too long to be made at once. */
  readonly pieces?: AsyncIterable<string>;
  /** Called when the answer is over, however far it came. */
  readonly onOver?: () => void;
  readonly headers?: Readonly<Record<string, string>>;
  /** The error behind an answer that is one, for the log. */
  readonly error?: ApiError;
  /** Of an answer in parts, those that failed by a defect, for the log. */
  readonly defects?: readonly ApiError[];
}

export interface BodyRules {
  /** Most bytes, before and after decompression. */
  readonly limit: number;
  readonly mediaTypes: readonly string[];
  readonly encodings: readonly string[];
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As uWebSockets.js matches it: `:name` stands for one segment. */
  readonly path: string;
  /** What the key must allow; null: no key is asked for. */
  readonly scope: Scope | null;
  readonly body: BodyRules | null;
  /** Query values that the route reads; others are ignored. */
  readonly queryNames: readonly string[];
  /**
   * What it does not return it tells: a promise for each answer costs more than all checks before it.
   * @throws ApiError, ClientGone
   */
  readonly handle: (call: Call, tell: (reply: Reply) => void) => Promise<Reply> | Reply | undefined;
}

/** What the router found for a request. */
export interface Place {
  /** Null for an unknown path, or for a known one under another method. */
  readonly route: Route | null;
  /** Methods of a known path; null for an unknown one. */
  readonly allow: string | null;
  /** Whether the path is served, or not found, without a key. */
  readonly keyless: boolean;
}

export interface Match extends Place {
  /** Path parameters, still percent-encoded. */
  readonly parameters: readonly string[];
}

const json = 'application/json';

/** A single event, a goal, a skill, a plan. */
const smallBody: BodyRules = { limit: 16 * 1024, mediaTypes: [json], encodings: ['identity'] };
const eventBatch: BodyRules = {
  limit: 1024 * 1024,
  mediaTypes: [json, 'application/x-ndjson'],
  encodings: ['identity', 'gzip'],
};

/** 500 ids of 128 characters, each of up to twelve bytes as JSON escapes. */
const classRequest: BodyRules = { limit: 1024 * 1024, mediaTypes: [json], encodings: ['identity'] };

export type Handlers = Record<
  | 'trackAnswer'
  | 'trackAnswers'
  | 'predictions'
  | 'classPredictions'
  | 'whatIf'
  | 'mastery'
  | 'skillMastery'
  | 'velocity'
  | 'goal'
  | 'putGoal'
  | 'deleteGoal'
  | 'skills'
  | 'skill'
  | 'putSkill'
  | 'deleteSkill'
  | 'attempts'
  | 'takeBackAnswer'
  | 'exportLearner'
  | 'eraseLearner'
  | 'erasure'
  | 'health'
  | 'livez'
  | 'readyz'
  | 'metrics',
  Route['handle']
>;

/** Routes by method and path; what most routes have in common is filled in. */
const route = (
  method: Route['method'],
  path: string,
  handle: Route['handle'],
  rules: Partial<Pick<Route, 'scope' | 'body' | 'queryNames'>>,
): Route => ({ method, path, handle, scope: null, body: null, queryNames: [], ...rules });

export const routesOf = (to: Handlers): readonly Route[] => [
  route('POST', '/api/v1/track-answer', to.trackAnswer, { scope: 'write', body: smallBody }),
  route('POST', '/api/v1/track-answers', to.trackAnswers, { scope: 'write', body: eventBatch }),
  route('GET', '/api/v1/predictions/:user_id', to.predictions, {
    scope: 'read',
    queryNames: ['days', 'confidence_level', 'locale'],
  }),
  route('POST', '/api/v1/predictions', to.classPredictions, { scope: 'read', body: classRequest }),
  route('POST', '/api/v1/predictions/:user_id/what-if', to.whatIf, { scope: 'read', body: smallBody }),
  route('GET', '/api/v1/mastery/:user_id', to.mastery, { scope: 'read', queryNames: ['limit', 'cursor'] }),
  route('GET', '/api/v1/mastery/:user_id/:skill_id', to.skillMastery, {
    scope: 'read',
    queryNames: ['explain', 'steps'],
  }),
  route('GET', '/api/v1/velocity/:user_id', to.velocity, {
    scope: 'read',
    queryNames: ['skill_id', 'days'],
  }),
  route('GET', '/api/v1/goals/:user_id', to.goal, { scope: 'read' }),
  route('PUT', '/api/v1/goals/:user_id', to.putGoal, { scope: 'write', body: smallBody }),
  route('DELETE', '/api/v1/goals/:user_id', to.deleteGoal, { scope: 'write' }),
  route('GET', '/api/v1/skills', to.skills, { scope: 'read', queryNames: ['limit', 'cursor'] }),
  route('GET', '/api/v1/skills/:skill_id', to.skill, { scope: 'read' }),
  route('PUT', '/api/v1/skills/:skill_id', to.putSkill, { scope: 'admin', body: smallBody }),
  route('DELETE', '/api/v1/skills/:skill_id', to.deleteSkill, { scope: 'admin' }),
  route('GET', '/api/v1/learners/:user_id/attempts', to.attempts, {
    scope: 'read',
    queryNames: ['limit', 'cursor'],
  }),
  route('DELETE', '/api/v1/learners/:user_id/attempts/:event_id', to.takeBackAnswer, { scope: 'write' }),
  route('GET', '/api/v1/learners/:user_id/export', to.exportLearner, { scope: 'admin' }),
  route('DELETE', '/api/v1/learners/:user_id', to.eraseLearner, { scope: 'admin' }),
  route('GET', '/api/v1/erasures/:erasure_id', to.erasure, { scope: 'admin' }),
  route('GET', '/api/v1/health', to.health, {}),
  route('GET', '/livez', to.livez, {}),
  route('GET', '/readyz', to.readyz, {}),
  route('GET', '/metrics', to.metrics, {}),
];
