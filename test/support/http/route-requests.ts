/** A fitting request to each route, for tests that walk them all. */
import { readdirSync } from 'node:fs';
import type { RequestParts } from './http.js';

/** What paths and bodies name. */
export interface Ids {
  readonly userId: string;
  readonly skillId: string;
  readonly eventId: string;
  readonly erasureId: string;
  readonly webhookId: string;
  /** Of an API key; absent: one that there is not. */
  readonly keyId?: string;
  /** Of a webhook; absent: one that there is not. */
  readonly messageId?: string;
}

const user = ({ userId }: Ids): string => encodeURIComponent(userId);
const skill = ({ skillId }: Ids): string => encodeURIComponent(skillId);
const event = ({ userId, skillId, eventId }: Ids): object => ({
  user_id: userId,
  skill_id: skillId,
  event_id: eventId,
  is_correct: true,
});
const webhook = ({ webhookId }: Ids): string => `/api/v1/webhooks/${webhookId}`;
const key = ({ keyId = '0123456789ab' }: Ids): string => `/api/v1/keys/${keyId}`;
const sends = (body: object): Pick<RequestParts, 'body'> => ({ body: JSON.stringify(body) });

/** The style sheet of a page: its name has a hash. */
export const styleFile = (page: 'docs' | 'dashboard'): string | undefined =>
  readdirSync(new URL('.', import.meta.resolve(`#bundle/${page}/index.html`)))
    .find((name) => name.endsWith('.css.gz'))
    ?.replace('.gz', '');
const xapi = { 'X-Experience-API-Version': '1.0.3' };
const statementId = '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5';
/** An answer, of the learner's account. */
const statement = ({ userId }: Ids): object => ({
  id: statementId,
  actor: { account: { homePage: 'http://lms.example/', name: userId } },
  verb: { id: 'http://adlnet.gov/expapi/verbs/answered' },
  object: { id: 'http://lms.example/items/1' },
  result: { success: true },
  context: { contextActivities: { parent: [{ id: 'http://lms.example/skills/1' }] } },
});

/** By the routes' names; a route that is added has to be added here. */
export const routeRequests: Readonly<Record<string, (ids: Ids) => Omit<RequestParts, 'method'>>> = {
  'POST /api/v1/track-answer': (ids) => ({ path: '/api/v1/track-answer', ...sends(event(ids)) }),
  'POST /api/v1/track-answers': (ids) => ({
    path: '/api/v1/track-answers',
    ...sends({ events: [event(ids), { ...event(ids), event_id: `${ids.eventId}-2` }] }),
  }),
  'GET /api/v1/predictions/:user_id': (ids) => ({ path: `/api/v1/predictions/${user(ids)}` }),
  'POST /api/v1/predictions': ({ userId }) => ({
    path: '/api/v1/predictions',
    ...sends({ user_ids: [userId] }),
  }),
  'POST /api/v1/predictions/:user_id/what-if': (ids) => ({
    path: `/api/v1/predictions/${user(ids)}/what-if`,
    ...sends({ answers_per_day: 10, skills: [ids.skillId] }),
  }),
  'POST /api/v1/next-items/:user_id': (ids) => ({
    path: `/api/v1/next-items/${user(ids)}`,
    ...sends({ items: [{ skill_id: ids.skillId, item_id: 'i' }] }),
  }),
  'GET /api/v1/mastery/:user_id': (ids) => ({ path: `/api/v1/mastery/${user(ids)}` }),
  'POST /api/v1/mastery': ({ userId, skillId }) => ({
    path: '/api/v1/mastery',
    ...sends({ user_ids: [userId], skill_ids: [skillId] }),
  }),
  'GET /api/v1/mastery/:user_id/:skill_id': (ids) => ({
    path: `/api/v1/mastery/${user(ids)}/${skill(ids)}?explain=true`,
  }),
  'GET /api/v1/mastery/:user_id/:skill_id/history': (ids) => ({
    path: `/api/v1/mastery/${user(ids)}/${skill(ids)}/history`,
  }),
  'GET /api/v1/velocity/:user_id': (ids) => ({
    path: `/api/v1/velocity/${user(ids)}?skill_id=${skill(ids)}`,
  }),
  'GET /api/v1/goals/:user_id': (ids) => ({ path: `/api/v1/goals/${user(ids)}` }),
  'PUT /api/v1/goals/:user_id': (ids) => ({
    path: `/api/v1/goals/${user(ids)}`,
    ...sends({ target_score: 1000 }),
  }),
  'DELETE /api/v1/goals/:user_id': (ids) => ({ path: `/api/v1/goals/${user(ids)}` }),
  'GET /api/v1/skills': () => ({ path: '/api/v1/skills' }),
  'GET /api/v1/skills/:skill_id': (ids) => ({ path: `/api/v1/skills/${skill(ids)}` }),
  'PUT /api/v1/skills/:skill_id': (ids) => ({
    path: `/api/v1/skills/${skill(ids)}`,
    ...sends({ name: 'Set' }),
  }),
  'DELETE /api/v1/skills/:skill_id': (ids) => ({ path: `/api/v1/skills/${skill(ids)}` }),
  'GET /api/v1/learners': ({ userId }) => ({
    path: `/api/v1/learners?prefix=${encodeURIComponent(userId.slice(0, 1))}`,
  }),
  'GET /api/v1/skills/:skill_id/statistics': (ids) => ({ path: `/api/v1/skills/${skill(ids)}/statistics` }),
  'GET /api/v1/skills/:skill_id/items': (ids) => ({ path: `/api/v1/skills/${skill(ids)}/items` }),
  'GET /api/v1/skill-statistics': () => ({ path: '/api/v1/skill-statistics' }),
  'GET /api/v1/learners/:user_id/attempts': (ids) => ({ path: `/api/v1/learners/${user(ids)}/attempts` }),
  'GET /api/v1/learners/:user_id/export': (ids) => ({ path: `/api/v1/learners/${user(ids)}/export` }),
  'GET /api/v1/erasures/:erasure_id': ({ erasureId }) => ({ path: `/api/v1/erasures/${erasureId}` }),
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': (ids) => ({
    path: `/api/v1/learners/${user(ids)}/attempts/${encodeURIComponent(ids.eventId)}`,
  }),
  'DELETE /api/v1/learners/:user_id': (ids) => ({ path: `/api/v1/learners/${user(ids)}` }),
  'GET /api/v1/model/versions': () => ({ path: '/api/v1/model/versions' }),
  'GET /api/v1/model/versions/:version': () => ({ path: '/api/v1/model/versions/0' }),
  'POST /api/v1/model/rollback': () => ({ path: '/api/v1/model/rollback', ...sends({ version: 0 }) }),
  'GET /api/v1/model/reliability': (ids) => ({ path: `/api/v1/model/reliability?skill_id=${skill(ids)}` }),
  'GET /api/v1/model/coverage': () => ({ path: '/api/v1/model/coverage' }),
  'GET /api/v1/key': () => ({ path: '/api/v1/key' }),
  'GET /api/v1/keys': () => ({ path: '/api/v1/keys' }),
  'POST /api/v1/keys': () => ({ path: '/api/v1/keys', ...sends({}) }),
  'PATCH /api/v1/keys/:key_id': (ids) => ({ path: key(ids), ...sends({ requests_per_minute: 50 }) }),
  'DELETE /api/v1/keys/:key_id': (ids) => ({ path: key(ids) }),
  'GET /api/v1/erasures': () => ({ path: '/api/v1/erasures' }),
  'GET /api/v1/parked': () => ({ path: '/api/v1/parked' }),
  'POST /api/v1/parked/redrive': () => ({ path: '/api/v1/parked/redrive' }),
  'GET /api/v1/audits': () => ({ path: '/api/v1/audits' }),
  'GET /api/v1/deployment': () => ({ path: '/api/v1/deployment' }),
  'POST /api/v1/webhooks': () => ({
    path: '/api/v1/webhooks',
    ...sends({ url: 'https://hooks.example.org/', event_types: ['*'] }),
  }),
  'GET /api/v1/webhooks': () => ({ path: '/api/v1/webhooks' }),
  'GET /api/v1/webhooks/:webhook_id': (ids) => ({ path: webhook(ids) }),
  'PATCH /api/v1/webhooks/:webhook_id': (ids) => ({
    path: webhook(ids),
    ...sends({ description: 'Changed' }),
  }),
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': (ids) => ({ path: `${webhook(ids)}/rotate-secret` }),
  'POST /api/v1/webhooks/:webhook_id/test': (ids) => ({ path: `${webhook(ids)}/test` }),
  'GET /api/v1/webhooks/:webhook_id/deliveries': (ids) => ({ path: `${webhook(ids)}/deliveries` }),
  'POST /api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver': (ids) => ({
    path: `${webhook(ids)}/deliveries/${ids.messageId ?? 'msg_1'}/redeliver`,
  }),
  'DELETE /api/v1/webhooks/:webhook_id': (ids) => ({ path: webhook(ids) }),
  'GET /api/v1/xapi-mapping': () => ({ path: '/api/v1/xapi-mapping' }),
  'PUT /api/v1/xapi-mapping': () => ({ path: '/api/v1/xapi-mapping', ...sends({}) }),
  'POST /xapi/statements': (ids) => ({ path: '/xapi/statements', headers: xapi, ...sends(statement(ids)) }),
  'PUT /xapi/statements': (ids) => ({
    path: `/xapi/statements?statementId=${statementId}`,
    ...{ headers: xapi, ...sends(statement(ids)) },
  }),
  'GET /xapi/about': () => ({ path: '/xapi/about' }),
  'GET /api/v1/live': () => ({ path: '/api/v1/live?events=1' }),
  'GET /api/v1/health': () => ({ path: '/api/v1/health' }),
  'GET /livez': () => ({ path: '/livez' }),
  'GET /readyz': () => ({ path: '/readyz' }),
  'GET /metrics': () => ({ path: '/metrics' }),
  'GET /openapi.json': () => ({ path: '/openapi.json' }),
  'GET /docs': () => ({ path: '/docs' }),
  'GET /docs/:file': () => ({ path: `/docs/${styleFile('docs')}` }),
  'GET /dashboard': () => ({ path: '/dashboard' }),
  'GET /dashboard/:file': () => ({ path: `/dashboard/${styleFile('dashboard')}` }),
  'GET /': () => ({ path: '/', headers: { Accept: 'text/html' } }),
};
