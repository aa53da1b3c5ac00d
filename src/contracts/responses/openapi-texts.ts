import type { ErrorCode } from '../../errors.js';
import type { RouteName } from './route-responses.js';

export const description = `Rules that hold for every call.

**Keys** come in the header X-API-Key. A key belongs to a tenant, sees nothing of others, and has scopes: \`write\` reports answers
and sets goals, \`read\` asks about learners and skills, \`admin\` sets skills, manages webhooks,
maps xAPI, exports, erases, and manages the tenant's keys, none with more than it has itself; \`operator\` is for what reaches
beyond a tenant: parked rows, audits, the deployment, keys and quotas of others. It is given by name only. \`x-scope\` names the
scope that a call needs, or those of which one is enough; a call without it needs no key.

**Errors** are \`{"success":false,"error":{"code","message","details"}}\`. \`x-retry\` says for each code whether sending the same
request again is safe: *yes*, *no*, or *with an event_id*. Send an \`event_id\` with every answer. Calls of xAPI have its own statuses, and the error alone as a body. Below /api/v1 an unknown path is
401 without a key and 404 NOT_FOUND with one; another method of a known path is 405 METHOD_NOT_ALLOWED. HEAD is answered as GET.

**Rate limits** hold for each key, in windows of 60 s that open with its first request, for all calls with a key together; a
batch is one request, and 401, 404 and 405 of unknown paths and methods are not counted. RateLimit and RateLimit-Policy say
where a key with a quota stands; 429 has Retry-After.

Absent knowledge is null, times are RFC 3339 in UTC. Unknown fields of bodies and queries are ignored; fields may be added to
answers.`;

export const securitySchemes = {
  ApiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  Basic: { type: 'http', scheme: 'basic', description: 'Any user name, with an API key as the password' },
} as const;

export const requestHeaders = {
  'X-Request-Id': { description: 'Comes back, and stands in the log', pattern: '^[A-Za-z0-9._:-]{1,128}$' },
  'Idempotency-Key': { description: 'The event_id where the body has none; in a batch K stands for K/INDEX' },
  'Content-Encoding': { description: 'gzip or identity, which is also meant where it is absent' },
  'X-Experience-API-Version': { description: '1.0 or 1.0.x', pattern: '^1\\.0(\\.\\d+)?$' },
  'If-Match': { description: 'Tags of which the state has to have one, or * for any state' },
};
export const responseHeaders = {
  'X-Request-Id': 'The X-Request-Id of the request, or one of the service',
  'RateLimit-Policy': 'Quota and seconds of the window, for a key with a quota: "default";q=100;w=60',
  RateLimit: 'What is left of it, and seconds until it is full again: "default";r=37;t=12',
  'Retry-After': 'Seconds to wait',
  'WWW-Authenticate': 'ApiKey; below /xapi also Basic',
  Allow: 'Methods of the path',
  ETag: 'Tag of this state; for goals and skills to be sent as If-Match',
  'X-Experience-API-Version': '1.0.3',
  'Idempotent-Replayed': 'true where the event id was counted before: this is the first answer again',
  'Cache-Control': 'Whether it may be used again without asking',
};
type HeaderName = keyof typeof requestHeaders | keyof typeof responseHeaders;

/** Client method, summary, further headers. */
export type Operation = readonly [id: string, summary: string, ...headers: HeaderName[]];

export const operations: Readonly<Record<RouteName, Operation>> = {
  'POST /api/v1/track-answer': ['trackAnswer', 'Count one answer', 'Idempotency-Key', 'Idempotent-Replayed'],
  'POST /api/v1/track-answers': ['trackAnswers', 'Count answers, each by itself', 'Idempotency-Key'],
  'GET /api/v1/predictions/:user_id': ['predictions', 'Scores now and later, with intervals and advice'],
  'POST /api/v1/predictions': ['classPredictions', 'The same for a class'],
  'POST /api/v1/predictions/:user_id/what-if': ['whatIf', 'The forecast under a plan of practice'],
  'POST /api/v1/next-items/:user_id': [
    'nextItems',
    'Which of some questions to ask the learner next, and why',
  ],
  'GET /api/v1/mastery/:user_id': ['mastery', 'Mastery of every skill that the learner answered'],
  'POST /api/v1/mastery': ['classMastery', 'Mastery of a class, of all skills or some'],
  'GET /api/v1/mastery/:user_id/:skill_id': ['skillMastery', 'Mastery of one skill, and why it is so'],
  'GET /api/v1/mastery/:user_id/:skill_id/history': ['skillAnswers', 'Answers on one skill, newest first'],
  'GET /api/v1/velocity/:user_id': ['velocity', 'How fast mastery moves; momentum, plateaus, practice'],
  'GET /api/v1/goals/:user_id': ['goal', "The learner's goal", 'ETag'],
  'PUT /api/v1/goals/:user_id': ['setGoal', 'Set the goal, also before the first answer', 'ETag'],
  'DELETE /api/v1/goals/:user_id': ['deleteGoal', 'Remove the goal'],
  'GET /api/v1/skills': ['skills', 'Skills that were set or answered'],
  'GET /api/v1/skills/:skill_id': ['skill', 'One skill with its parameters', 'ETag'],
  'PUT /api/v1/skills/:skill_id': ['setSkill', 'Replace all that is set of a skill', 'ETag'],
  'DELETE /api/v1/skills/:skill_id': ['deleteSkill', 'Forget a skill that has fewer than 20 answers'],
  'GET /api/v1/learners': ['learners', 'Learners by the beginning of their ids'],
  'GET /api/v1/skills/:skill_id/statistics': ['statisticsOfSkill', 'How all learners do on the skill'],
  'GET /api/v1/skills/:skill_id/items': ['skillItems', 'Items of the skill, the hardest first'],
  'GET /api/v1/skill-statistics': ['skillStatistics', 'How all learners do on each skill that has answers'],
  'GET /api/v1/learners/:user_id/attempts': ['attempts', "The learner's answers, newest first"],
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ['retractAttempt', 'Retract an answer'],
  'GET /api/v1/learners/:user_id/export': ['exportLearner', 'All that is stored of the learner, as NDJSON'],
  'DELETE /api/v1/learners/:user_id': ['eraseLearner', 'Erase the learner everywhere'],
  'GET /api/v1/erasures': ['erasures', 'Erasures of the tenant, newest first'],
  'GET /api/v1/erasures/:erasure_id': ['erasure', 'How far an erasure is, with its proof'],
  'GET /api/v1/model/versions': ['modelVersions', 'Fits, and returns to earlier versions, newest first'],
  'GET /api/v1/model/versions/:version': ['modelVersion', 'What a fit found for each skill'],
  'GET /api/v1/model/reliability': ['reliability', 'How often answers of a probability were right'],
  'GET /api/v1/model/coverage': ['coverage', 'How often the intervals of served forecasts held'],
  'GET /api/v1/key': ['ownKey', 'What the key of the request may do'],
  'GET /api/v1/keys': ['keys', 'API keys of the tenant, for operators of all, newest first'],
  'POST /api/v1/keys': ['createKey', 'Make an API key, which is told here only'],
  'PATCH /api/v1/keys/:key_id': ['changeKey', 'Set the quota of a key'],
  'DELETE /api/v1/keys/:key_id': ['revokeKey', 'Revoke a key, also the own one; within 5 s it is refused'],
  'POST /api/v1/model/rollback': ['rollBack', 'Put an earlier version into force again'],
  'GET /api/v1/parked': ['parked', 'Rows of all tenants that ClickHouse refused and that were put aside'],
  'POST /api/v1/parked/redrive': ['redrive', 'Put all of them back, to be stored'],
  'GET /api/v1/audits': ['audits', 'What the last audit found'],
  'GET /api/v1/deployment': ['deployment', 'The deployment and the versions of its parts'],
  'POST /api/v1/webhooks': ['createWebhook', 'Have events sent to a URL; tells the secret that signs them'],
  'GET /api/v1/webhooks': ['webhooks', 'Endpoints of the tenant'],
  'GET /api/v1/webhooks/:webhook_id': ['webhook', 'One endpoint'],
  'PATCH /api/v1/webhooks/:webhook_id': ['changeWebhook', 'Change what the body names'],
  'DELETE /api/v1/webhooks/:webhook_id': ['deleteWebhook', 'Send it nothing any more'],
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': [
    'rotateSecret',
    'A new secret; the old one signs as well for a day, unless `revoke_old` is true',
  ],
  'POST /api/v1/webhooks/:webhook_id/test': ['testWebhook', 'Send it the event webhook.test'],
  'GET /api/v1/webhooks/:webhook_id/deliveries': ['deliveries', 'Messages of seven days, newest first'],
  'POST /api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver': [
    'redeliver',
    'Send a message again, with its webhook-id',
  ],
  'GET /api/v1/xapi-mapping': ['xapiMapping', 'How xAPI statements become answers', 'ETag'],
  'PUT /api/v1/xapi-mapping': ['setXapiMapping', 'Set it, all of it', 'ETag'],
  'POST /xapi/statements': ['postStatements', 'Take statements in; those that are answers are counted'],
  'PUT /xapi/statements': ['putStatement', 'Take one statement in'],
  'GET /xapi/about': ['aboutXapi', 'The version of xAPI'],
  'GET /api/v1/live': ['live', 'Figures of the running service, each second', 'Cache-Control'],
  'GET /api/v1/health': ['health', 'State of the parts'],
  'GET /livez': ['livez', 'Whether the process is alive and its consumers move'],
  'GET /readyz': ['readyz', 'Whether it is ready for traffic'],
  'GET /metrics': ['metrics', 'Figures in the Prometheus text format'],
  'GET /openapi.json': ['openapi', 'This description', 'Cache-Control', 'ETag'],
};

/** See standardwebhooks.com. */
export const webhookHeaders = {
  'webhook-id': 'The same however often the message is sent, and to whichever endpoint',
  'webhook-timestamp': 'Unix seconds of this try',
  'webhook-signature':
    'For each secret that is valid `v1,` and base64 of HMAC-SHA-256 over `ID.TIMESTAMP.BODY`, a space between two',
};

export const pathExamples: Readonly<Record<string, string>> = {
  user_id: 'ada',
  skill_id: 'linear-equations',
  event_id: 'a-1',
};

export const errorDescriptions: Readonly<Record<ErrorCode, string>> = {
  INVALID_REQUEST: 'The body is no JSON, or a field, id, header or query value is missing or does not fit',
  UNAUTHORIZED: 'The key is missing or unknown',
  FORBIDDEN: "The key's scope does not allow it",
  NOT_FOUND: 'Nothing is at this path, or has this id in the tenant',
  USER_NOT_FOUND: 'Nothing is known of the learner in this tenant',
  SKILL_NOT_FOUND: 'The skill is unknown in this tenant, or the learner never answered it',
  GOAL_NOT_FOUND: 'The learner has no goal',
  WEBHOOK_NOT_FOUND: 'The tenant has no webhook of this id',
  METHOD_NOT_ALLOWED: 'The path takes other methods',
  CONFLICT:
    'The first request with this event_id still runs; the skill has too many answers to be forgotten; the webhook is disabled or has no secret; or the key was revoked',
  PRECONDITION_FAILED: 'The state has none of the tags in If-Match',
  PAYLOAD_TOO_LARGE: 'The body is larger than the limit, unpacked',
  UNSUPPORTED_MEDIA_TYPE: 'Content-Type or Content-Encoding is none of those that are taken',
  IDEMPOTENCY_KEY_REUSED: 'This event_id came with another event of the learner',
  LIMIT_EXCEEDED:
    'There are as many skills of the learner or in the tenant, webhooks, secrets or keys, as are allowed; or a class has too many masteries for one answer',
  TOO_LATE: 'The answer is archived and cannot be taken back any more',
  RATE_LIMITED: 'The quota of the key is spent',
  INTERNAL: 'A defect, which the log has under the X-Request-Id',
  UNAVAILABLE: 'Redis or ClickHouse is unavailable, or too much waits already',
};
