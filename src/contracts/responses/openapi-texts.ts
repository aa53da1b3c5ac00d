import type { ErrorCode } from '../../errors.js';
import type { RouteName } from './route-responses.js';

export const description = `Rules for all calls.

**Keys.** Send the API key in the header X-API-Key. A key belongs to one tenant and only reads and changes data of that tenant.
The property \`x-scope\` of a call names the scope that the key needs; if it is a list, one scope of the list is enough. Calls
without \`x-scope\` need no key.

- \`write\`: send and retract answers, set goals, groups and profiles.
- \`read\`: read learners and skills, run what-if forecasts.
- \`admin\`: configure skills, webhooks, xAPI and the time zone, export and erase learners, manage keys of the tenant. A
  new key has at most the rights of the key that creates it.
- \`operator\`: data and actions of all tenants: parked rows, audits, the deployment, keys and quotas. A key only has this scope if
  the request or command that creates it names the scope.

**Errors.** The body is \`{"success":false,"error":{"code","message","details"}}\`. The property \`x-retry\` of a response says for each
code whether a retry of the same request is safe: *yes*, *no*, or *with an event_id*. Send an \`event_id\` with every answer. Under
/api/v1, an unknown path returns 401 without a key and 404 NOT_FOUND with a key; an unsupported method returns 405
METHOD_NOT_ALLOWED. xAPI calls use the statuses of the xAPI specification and return the error without an envelope.

**Rate limits.** Each key has a quota of requests per 60 s. The window starts with the first request. All calls with a key count,
and a batch counts as one request. Responses with 401 or 429, and requests for unknown paths or with
unsupported methods, do not count. RateLimit and RateLimit-Policy
report the state of the quota. A 429 response has Retry-After.

**Formats.** Unknown values are null. Times are RFC 3339 in UTC. Days are days in the time zone of the tenant
(\`GET /api/v1/settings\`). Unknown body fields and query parameters are ignored. New fields can be added to responses. HEAD is
supported where GET is, and returns only the headers. JSON over 8 KiB is gzip-compressed if Accept-Encoding allows gzip.`;

export const securitySchemes = {
  ApiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  Basic: { type: 'http', scheme: 'basic', description: 'Any user name; the password is the API key.' },
} as const;

export const requestHeaders = {
  'X-Request-Id': {
    description: 'Request id. The response and the log contain it.',
    pattern: '^[A-Za-z0-9._:-]{1,128}$',
  },
  'Idempotency-Key': {
    description: 'Replaces a missing event_id. In a batch, event i gets the event_id KEY/i.',
  },
  'Content-Encoding': { description: 'gzip or identity (default).' },
  'X-Experience-API-Version': { description: 'Must be 1.0 or 1.0.x.', pattern: '^1\\.0(\\.\\d+)?$' },
  'If-Match': {
    description:
      'ETags. The request fails with 412 if none is the current ETag; * matches any existing resource.',
  },
};
export const responseHeaders = {
  'X-Request-Id': 'X-Request-Id of the request, or a generated id.',
  'RateLimit-Policy':
    'Requests per window and window in seconds, for keys with a quota: "default";q=100;w=60.',
  RateLimit: 'Remaining requests and seconds until the window ends: "default";r=37;t=12.',
  'Retry-After': 'Seconds to wait before a retry.',
  'WWW-Authenticate': 'ApiKey; for xAPI calls also Basic.',
  Allow: 'Methods that the path supports.',
  ETag: 'Tag of the current state. Send it as If-Match to change this state only.',
  'X-Experience-API-Version': 'Always 1.0.3.',
  'Idempotent-Replayed': 'true for a repeated event_id: the response repeats the first result.',
  'Cache-Control': 'no-store; of /openapi.json: no-cache.',
};
type HeaderName = keyof typeof requestHeaders | keyof typeof responseHeaders;

/** Client method, summary, further headers. */
export type Operation = readonly [id: string, summary: string, ...headers: HeaderName[]];

export const operations: Readonly<Record<RouteName, Operation>> = {
  'POST /api/v1/track-answer': ['trackAnswer', 'Record one answer', 'Idempotency-Key', 'Idempotent-Replayed'],
  'POST /api/v1/track-answers': ['trackAnswers', 'Record up to 1,000 answers', 'Idempotency-Key'],
  'GET /api/v1/predictions/:user_id': ['predictions', 'Forecast the scores of a learner'],
  'POST /api/v1/predictions': ['classPredictions', 'Forecast the scores of a class'],
  'POST /api/v1/predictions/:user_id/what-if': ['whatIf', 'Forecast the scores under a practice plan'],
  'POST /api/v1/next-items/:user_id': ['nextItems', 'Rank candidate items for a learner'],
  'GET /api/v1/mastery/:user_id': ['mastery', 'List the mastery of each skill of a learner'],
  'POST /api/v1/mastery': ['classMastery', 'Read the mastery of a class'],
  'GET /api/v1/mastery/:user_id/:skill_id': ['skillMastery', 'Read and explain the mastery of one skill'],
  'GET /api/v1/mastery/:user_id/:skill_id/history': [
    'skillAnswers',
    'List the answers of a learner on one skill, newest first',
  ],
  'GET /api/v1/velocity/:user_id': [
    'velocity',
    'Read the learning velocity, momentum, plateaus and practice of a learner',
  ],
  'GET /api/v1/goals/:user_id': ['goal', 'Read the goal of a learner', 'ETag'],
  'PUT /api/v1/goals/:user_id': ['setGoal', 'Set the goal of a learner', 'ETag'],
  'DELETE /api/v1/goals/:user_id': ['deleteGoal', 'Delete the goal of a learner'],
  'GET /api/v1/skills': ['skills', 'List skills that are configured or have answers'],
  'GET /api/v1/skills/:skill_id': ['skill', 'Read the settings and parameters of a skill', 'ETag'],
  'PUT /api/v1/skills/:skill_id': ['setSkill', 'Replace the settings of a skill', 'ETag'],
  'DELETE /api/v1/skills/:skill_id': ['deleteSkill', 'Delete a skill that has fewer than 20 answers'],
  'GET /api/v1/learners': ['learners', 'List learners, optionally by a prefix of their ids'],
  'GET /api/v1/groups': ['groups', 'List groups of learners'],
  'GET /api/v1/groups/:group_id': ['group', 'Read a group and its members'],
  'PUT /api/v1/groups/:group_id': ['setGroup', 'Create or replace a group and its members'],
  'DELETE /api/v1/groups/:group_id': ['deleteGroup', 'Delete a group; its learners stay'],
  'GET /api/v1/groups/:group_id/skills': ['groupSkills', 'Read the skills of a class, by need of help'],
  'GET /api/v1/groups/:group_id/summary': [
    'groupSummary',
    'Read what a teacher should know of a class today',
  ],
  'POST /api/v1/groups/:group_id/members': ['changeMembers', 'Add and remove members of a group'],
  'GET /api/v1/learners/:user_id/profile': [
    'profile',
    'Read the display name, attributes and groups of a learner',
  ],
  'PUT /api/v1/learners/:user_id/profile': [
    'setProfile',
    'Replace the display name and attributes of a learner',
  ],
  'POST /api/v1/learners/profiles': ['profiles', 'Read the display names and attributes of learners'],
  'GET /api/v1/skills/:skill_id/statistics': [
    'statisticsOfSkill',
    'Read the statistics of a skill over all learners',
  ],
  'GET /api/v1/skills/:skill_id/items': ['skillItems', 'List the items of a skill, hardest first'],
  'GET /api/v1/skill-statistics': ['skillStatistics', 'List the statistics of all skills that have answers'],
  'GET /api/v1/learners/:user_id/attempts': ['attempts', 'List the answers of a learner, newest first'],
  'DELETE /api/v1/learners/:user_id/attempts/:event_id': ['retractAttempt', 'Retract an answer'],
  'GET /api/v1/learners/:user_id/export': ['exportLearner', 'Export all data of a learner as NDJSON'],
  'DELETE /api/v1/learners/:user_id': ['eraseLearner', 'Erase all data of a learner'],
  'GET /api/v1/erasures': ['erasures', 'List the erasures of the tenant, newest first'],
  'GET /api/v1/erasures/:erasure_id': ['erasure', 'Read the progress and proof of an erasure'],
  'GET /api/v1/model/versions': ['modelVersions', 'List fits and rollbacks of the model, newest first'],
  'GET /api/v1/model/versions/:version': [
    'modelVersion',
    'List the fitted parameters of a model version by skill',
  ],
  'GET /api/v1/model/reliability': ['reliability', 'Compare predicted probabilities with observed accuracy'],
  'GET /api/v1/model/coverage': [
    'coverage',
    'Read how often forecast intervals contained the observed value',
  ],
  'GET /api/v1/key': ['ownKey', 'Read the scopes and quota of the calling key'],
  'GET /api/v1/keys': ['keys', 'List API keys of the tenant, newest first; operators list all tenants'],
  'POST /api/v1/keys': ['createKey', 'Create an API key; only this response contains it'],
  'PATCH /api/v1/keys/:key_id': ['changeKey', 'Change the quota, name or note of a key'],
  'DELETE /api/v1/keys/:key_id': ['revokeKey', 'Revoke a key; requests with it are rejected within 5 s'],
  'POST /api/v1/model/rollback': ['rollBack', 'Activate an earlier model version'],
  'GET /api/v1/parked': ['parked', 'List parked rows (rejected by ClickHouse) of all tenants'],
  'POST /api/v1/parked/redrive': ['redrive', 'Requeue all parked rows'],
  'GET /api/v1/audits': ['audits', 'Read the result of the last audit'],
  'POST /api/v1/audits': ['startAudit', 'Start an audit; a running audit gives 409'],
  'GET /api/v1/activity': [
    'activity',
    'List changes through the API, newest first; operators list all tenants',
  ],
  'GET /api/v1/deployment': ['deployment', 'Read the deployment id and component versions'],
  'POST /api/v1/webhooks': [
    'createWebhook',
    'Create a webhook; only this response contains the signing secret',
  ],
  'GET /api/v1/webhooks': ['webhooks', 'List the webhooks of the tenant'],
  'GET /api/v1/webhooks/:webhook_id': ['webhook', 'Read a webhook'],
  'PATCH /api/v1/webhooks/:webhook_id': ['changeWebhook', 'Change the given fields of a webhook'],
  'DELETE /api/v1/webhooks/:webhook_id': ['deleteWebhook', 'Delete a webhook'],
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': [
    'rotateSecret',
    'Create a new signing secret; the old secret signs for 24 h unless `revoke_old` is true',
  ],
  'POST /api/v1/webhooks/:webhook_id/test': ['testWebhook', 'Send the event webhook.test to a webhook'],
  'GET /api/v1/webhooks/:webhook_id/deliveries': [
    'deliveries',
    'List the messages of the last 7 days, newest first',
  ],
  'POST /api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver': [
    'redeliver',
    'Send a message again with the same webhook-id',
  ],
  'GET /api/v1/settings': ['settings', 'Read the time zone of the tenant and the progress of its change'],
  'PUT /api/v1/settings': [
    'setSettings',
    'Change the time zone; a job then moves earlier answers to its days',
  ],
  'GET /api/v1/xapi-mapping': ['xapiMapping', 'Read the mapping of xAPI statements to answers', 'ETag'],
  'PUT /api/v1/xapi-mapping': ['setXapiMapping', 'Replace the mapping of xAPI statements to answers', 'ETag'],
  'POST /xapi/statements': ['postStatements', 'Record up to 1,000 xAPI statements'],
  'PUT /xapi/statements': ['putStatement', 'Record one xAPI statement'],
  'GET /xapi/about': ['aboutXapi', 'Read the supported xAPI version'],
  'GET /api/v1/live': ['live', 'Stream metrics of the running service, once per second'],
  'GET /api/v1/live/history': ['liveHistory', 'Read rates, latency and the busiest keys of up to 24 hours'],
  'GET /api/v1/health': ['health', 'Read the health of the service and its components'],
  'GET /livez': ['livez', 'Check that the process is alive and its consumers make progress'],
  'GET /readyz': ['readyz', 'Check that the process is ready for traffic'],
  'GET /metrics': ['metrics', 'Read metrics in the Prometheus text format'],
  'GET /openapi.json': ['openapi', 'Read the OpenAPI description', 'ETag'],
};

/** See standardwebhooks.com. */
export const webhookHeaders = {
  'webhook-id': 'Id of the message: the same for all attempts and endpoints.',
  'webhook-timestamp': 'Time of this attempt, in Unix seconds.',
  'webhook-signature':
    'One signature per valid secret, separated by spaces: `v1,` and base64 of HMAC-SHA-256 over `ID.TIMESTAMP.BODY`.',
};

export const pathExamples: Readonly<Record<string, string>> = {
  user_id: 'ada',
  skill_id: 'linear-equations',
  event_id: 'a-1',
  group_id: 'year-9-lee',
};

export const errorDescriptions: Readonly<Record<ErrorCode, string>> = {
  INVALID_REQUEST: 'The body is not valid JSON, or a field, id, header or query value is missing or invalid.',
  UNAUTHORIZED: 'The API key is missing, unknown or revoked.',
  FORBIDDEN: 'The key lacks a scope or right that the call needs.',
  NOT_FOUND: 'The path does not exist, or the tenant has no resource with this id.',
  USER_NOT_FOUND:
    'The tenant has no recorded answers of this learner (for profiles, export and erasure: nothing else either).',
  SKILL_NOT_FOUND: 'The skill is unknown in this tenant, or has no answers of this learner.',
  GOAL_NOT_FOUND: 'The learner has no goal.',
  WEBHOOK_NOT_FOUND: 'The tenant has no webhook with this id.',
  METHOD_NOT_ALLOWED: 'The path does not support this method; see Allow.',
  CONFLICT:
    'The first request with this event_id is still running, the skill has too many answers to be deleted, the webhook is disabled or has no secret, an audit is running, or the key is revoked.',
  PRECONDITION_FAILED: 'No tag in If-Match is the current ETag.',
  PAYLOAD_TOO_LARGE: 'The body is larger than the limit, before or after decompression.',
  UNSUPPORTED_MEDIA_TYPE: 'The Content-Type or Content-Encoding is not supported.',
  IDEMPOTENCY_KEY_REUSED: 'The event_id was used for a different event of this learner.',
  LIMIT_EXCEEDED:
    'A limit is exceeded: skills per learner or tenant, groups, members, webhooks, secrets, keys, or masteries per response.',
  TOO_LATE: 'The answer is archived and cannot be retracted.',
  RATE_LIMITED: 'The quota of the key is exhausted; see Retry-After.',
  INTERNAL: 'Internal error. The log line has the X-Request-Id.',
  UNAVAILABLE: 'Redis or ClickHouse is unavailable, or a queue is full; see Retry-After.',
};
