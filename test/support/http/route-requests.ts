/** A valid request to each route, for tests that call all of them. */
import { readdirSync } from 'node:fs';
import type { RequestParts } from './http.js';
import { nameOf, routeTable } from './route-table.js';

/** Values of path parameters and of fields in bodies. */
export interface Ids {
  readonly userId: string;
  readonly skillId: string;
  readonly eventId: string;
  readonly erasureId: string;
  readonly webhookId: string;
  /** By default derived from the learner. */
  readonly groupId?: string;
  /** Of an API key; by default an unknown one. */
  readonly keyId?: string;
  /** Of a webhook message; by default an unknown one. */
  readonly messageId?: string;
}

/** The style sheet of a page, which has a hash in its name. */
export const styleFile = (page: 'docs' | 'dashboard'): string | undefined =>
  readdirSync(new URL('.', import.meta.resolve(`#bundle/${page}/index.html`)))
    .find((name) => name.endsWith('.css.gz'))
    ?.replace('.gz', '');

const event = ({ userId, skillId, eventId }: Ids): object => ({
  ...{ user_id: userId, skill_id: skillId, event_id: eventId, is_correct: true },
});
const statementId = '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5';
/** An answer of the learner with this account name. */
const statement = ({ userId }: Ids): object => ({
  id: statementId,
  actor: { account: { homePage: 'http://lms.example/', name: userId } },
  verb: { id: 'http://adlnet.gov/expapi/verbs/answered' },
  object: { id: 'http://lms.example/items/1' },
  result: { success: true },
  context: { contextActivities: { parent: [{ id: 'http://lms.example/skills/1' }] } },
});

/** Bodies by route. */
const bodies: Readonly<Record<string, (ids: Ids) => object>> = {
  'POST /api/v1/track-answer': event,
  'POST /api/v1/track-answers': (ids) => ({
    events: [event(ids), { ...event(ids), event_id: `${ids.eventId}-2` }],
  }),
  'POST /api/v1/predictions': ({ userId }) => ({ user_ids: [userId] }),
  'POST /api/v1/predictions/:user_id/what-if': ({ skillId }) => ({ answers_per_day: 10, skills: [skillId] }),
  'POST /api/v1/next-items/:user_id': ({ skillId }) => ({ items: [{ skill_id: skillId, item_id: 'i' }] }),
  'POST /api/v1/mastery': ({ userId, skillId }) => ({ user_ids: [userId], skill_ids: [skillId] }),
  'PUT /api/v1/goals/:user_id': () => ({ target_score: 1000 }),
  'PUT /api/v1/groups/:group_id': ({ userId }) => ({ name: 'Year 9', user_ids: [userId] }),
  'POST /api/v1/groups/:group_id/members': ({ userId }) => ({ add: [`${userId}-2`] }),
  'PUT /api/v1/learners/:user_id/profile': ({ userId }) => ({ display_name: `Name of ${userId}` }),
  'POST /api/v1/learners/profiles': ({ userId }) => ({ user_ids: [userId] }),
  'PUT /api/v1/skills/:skill_id': () => ({ name: 'Set' }),
  'POST /api/v1/model/rollback': () => ({ version: 0 }),
  'POST /api/v1/keys': () => ({}),
  'PATCH /api/v1/keys/:key_id': () => ({ requests_per_minute: 50 }),
  'POST /api/v1/webhooks': () => ({ url: 'https://hooks.example.org/', event_types: ['*'] }),
  'PATCH /api/v1/webhooks/:webhook_id': () => ({ description: 'Changed' }),
  'PUT /api/v1/settings': () => ({ time_zone: 'Europe/Berlin' }),
  'PUT /api/v1/xapi-mapping': () => ({}),
  'POST /xapi/statements': statement,
  'PUT /xapi/statements': statement,
};

/** Queries by route. */
const queries: Readonly<Record<string, (ids: Ids) => string>> = {
  'GET /api/v1/mastery/:user_id/:skill_id': () => 'explain=true',
  'GET /api/v1/velocity/:user_id': ({ skillId }) => `skill_id=${encodeURIComponent(skillId)}`,
  'GET /api/v1/learners': ({ userId }) => `prefix=${encodeURIComponent(userId.slice(0, 1))}`,
  'GET /api/v1/model/reliability': ({ skillId }) => `skill_id=${encodeURIComponent(skillId)}`,
  'GET /api/v1/live': () => 'events=1',
  'PUT /xapi/statements': () => `statementId=${statementId}`,
};

const headers: Readonly<Record<string, RequestParts['headers']>> = {
  'POST /xapi/statements': { 'X-Experience-API-Version': '1.0.3' },
  'PUT /xapi/statements': { 'X-Experience-API-Version': '1.0.3' },
  'GET /': { Accept: 'text/html' },
};

const parametersOf = (ids: Ids, path: string): Readonly<Record<string, string | undefined>> => ({
  ...{ user_id: ids.userId, skill_id: ids.skillId, event_id: ids.eventId, erasure_id: ids.erasureId },
  ...{ webhook_id: ids.webhookId, message_id: ids.messageId ?? 'msg_1', key_id: ids.keyId ?? '0123456789ab' },
  ...{ group_id: ids.groupId ?? `group-${ids.userId}`, version: '0' },
  ...(path.endsWith(':file') && { file: styleFile(path.startsWith('/docs') ? 'docs' : 'dashboard') }),
});

type Request = Omit<RequestParts, 'method'>;

function buildRequest(name: string, routePath: string, ids: Ids): Request {
  const parameters = routePath.includes(':') ? parametersOf(ids, routePath) : {};
  const path = routePath.replace(/:(\w+)/g, (_, name) => encodeURIComponent(parameters[name] ?? ''));
  const [query, body] = [queries[name]?.(ids), bodies[name]?.(ids)];
  return {
    path: query === undefined ? path : `${path}?${query}`,
    ...(body && { body: JSON.stringify(body) }),
    ...(headers[name] && { headers: headers[name] }),
  };
}

/** Requests by the names of the routes. */
export const routeRequests: Readonly<Record<string, (ids: Ids) => Request>> = Object.fromEntries(
  routeTable.map((route) => [nameOf(route), (ids: Ids) => buildRequest(nameOf(route), route.path, ids)]),
);
