/** Every call of the API, in one table: who may call it, what it takes, and which use case answers it. */
import Type, { type TObject, type TSchema } from 'typebox';
import { EventLines, LearningEvent, WellFormedBatch } from '../contracts/events.js';
import { GoalBody } from '../contracts/goals.js';
import { checkShape, parseJson } from '../contracts/json.js';
import { SkillRequest } from '../contracts/skills.js';
import { NewWebhook, Rotation, WebhookChange } from '../contracts/webhooks.js';
import { MappingRequest, maxMappingValues } from '../contracts/xapi/mapping.js';
import { StatementBody, Uuid } from '../contracts/xapi/statement.js';
import { unavailable } from '../errors.js';
import { deleteSkill, putSkill, type SkillDeletePorts } from '../services/catalogue/write-skill.js';
import { type Erasures, eraseLearner, readErasure } from '../services/corrections/erasures.js';
import { type RetractionPorts, retractAnswer } from '../services/corrections/retract-answer.js';
import type { ExportLearner } from '../services/read/export-learner.js';
import {
  ClassRequest,
  forecastClass,
  forecastScores,
  forecastWhatIf,
  PlanRequest,
  PredictionQuery,
} from '../services/read/forecast-scores.js';
import { deleteGoal, type GoalPorts, putGoal, readGoal } from '../services/read/goals.js';
import type { Health } from '../services/read/health.js';
import { type AttemptPorts, listAttempts } from '../services/read/list-attempts.js';
import { PageQuery } from '../services/read/pages.js';
import {
  type ExplainPorts,
  ExplainQuery,
  explainMastery,
  readMastery,
  readSkillMastery,
} from '../services/read/read-mastery.js';
import { listSkills, readSkill } from '../services/read/read-skills.js';
import { readVelocity, type VelocityPorts, VelocityQuery } from '../services/read/velocity.js';
import type { AttemptRecorder } from '../services/record/record-attempts.js';
import {
  type DeliveryPorts,
  listDeliveries,
  redeliver,
  testWebhook,
} from '../services/webhooks/deliveries.js';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  readWebhook,
  rotateSecret,
  type WebhookPorts,
} from '../services/webhooks/manage.js';
import { getMapping, type MappingPorts, putMapping } from '../services/xapi/mappings.js';
import { putStatement, recordStatements, type StatementPorts } from '../services/xapi/record-statements.js';
import { sliceTurn } from '../slices.js';
import { batchReply, classReply, errorEnvelope, errorReply, eventReply, ok, tagged } from './replies.js';
import { type BodyRules, type Reply, type Route, route } from './route.js';
import { xapi } from './xapi.js';

export interface RoutePorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Parameters<typeof forecastScores>[0];
  readonly mastery: ExplainPorts;
  readonly velocity: VelocityPorts;
  readonly goals: GoalPorts;
  readonly skills: SkillDeletePorts;
  readonly attempts: AttemptPorts;
  readonly retraction: RetractionPorts;
  readonly statements: StatementPorts;
  readonly mappings: MappingPorts;
  readonly erasures: Erasures;
  readonly exportLearner: ExportLearner;
  readonly webhooks: WebhookPorts & DeliveryPorts;
  readonly health: Health;
  /** Figures in the Prometheus text format. */
  readonly metrics: () => Promise<string>;
}

const json = 'application/json';

const bodyOf = (limit: number, content: BodyRules['content'], ...encodings: string[]): BodyRules => ({
  ...{ limit, content, mediaTypes: Object.keys(content) },
  encodings: ['identity', ...encodings],
});
/** A single event, a goal, a skill, a plan, a webhook. */
const smallBody = (schema: TSchema): BodyRules => bodyOf(16 * 1024, { [json]: schema });
const largeBytes = 1024 * 1024;
const eventBatch = bodyOf(
  largeBytes,
  { [json]: WellFormedBatch, 'application/x-ndjson': EventLines },
  'gzip',
);
/** Fifty fields for each of a thousand statements. */
const maxStatementValues = 50_000;
const statements = bodyOf(largeBytes, { [json]: StatementBody }, 'gzip');
const StatementQuery = Type.Object({ statementId: Uuid });
/** 500 ids of 128 characters, each of up to twelve bytes as JSON escapes. */
const classRequest = bodyOf(largeBytes, { [json]: ClassRequest });
/** Far more than the ids of a class and its options. */
const maxClassValues = 5000;

const reads = <Query extends TObject>(query: Query | null = null) => ({ scope: 'read', query }) as const;
const writes = (body: BodyRules | null = null) => ({ scope: 'write', body }) as const;
const administers = (body: BodyRules | null = null) => ({ scope: 'admin', body }) as const;
const administersPages = { scope: 'admin', query: PageQuery } as const;

export const routesOf = (ports: RoutePorts): readonly Route[] => [
  route('POST', '/api/v1/track-answer', writes(smallBody(LearningEvent)), (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    ports.recorder.recordOne(call, (result) => call.respond(eventReply(result)));
    return undefined;
  }),
  route('POST', '/api/v1/track-answers', writes(eventBatch), async (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    return batchReply(await ports.recorder.recordBatch(call.mediaType === json ? 'batch' : 'lines', call));
  }),
  route('GET', '/api/v1/predictions/:user_id', reads(PredictionQuery), async (call, userId) =>
    ok(await forecastScores(ports.forecaster, call.tenant, userId, call.query, call.stillWanted)),
  ),
  route('POST', '/api/v1/predictions', { scope: 'read', body: classRequest }, async (call) => {
    const body = await parseLarge(call.body, maxClassValues);
    return classReply(await forecastClass(ports.forecaster, call.tenant, body, call.stillWanted));
  }),
  route(
    'POST',
    '/api/v1/predictions/:user_id/what-if',
    { scope: 'read', body: smallBody(PlanRequest) },
    async ({ tenant, body, stillWanted }, userId) =>
      ok(await forecastWhatIf(ports.forecaster, tenant, userId, parseJson(body), stillWanted)),
  ),
  route('GET', '/api/v1/mastery/:user_id', reads(PageQuery), async ({ tenant, query }, userId) =>
    ok(await readMastery(ports.mastery, tenant, userId, query)),
  ),
  route('GET', '/api/v1/mastery/:user_id/:skill_id', reads(ExplainQuery), async (call, userId, skillId) =>
    ok(
      call.query.explain === 'true'
        ? await explainMastery(ports.mastery, call.tenant, userId, skillId, call.query.steps)
        : await readSkillMastery(ports.mastery, call.tenant, userId, skillId),
    ),
  ),
  route('GET', '/api/v1/velocity/:user_id', reads(VelocityQuery), async ({ tenant, query }, userId) =>
    ok(await readVelocity(ports.velocity, tenant, userId, query)),
  ),
  route('GET', '/api/v1/goals/:user_id', reads(), async ({ tenant }, userId) =>
    tagged(await readGoal(ports.goals, tenant, userId)),
  ),
  route(
    'PUT',
    '/api/v1/goals/:user_id',
    writes(smallBody(GoalBody)),
    async ({ tenant, body, ifMatch }, userId) =>
      tagged(await putGoal(ports.goals, tenant, userId, parseJson(body), ifMatch), 'Goal set'),
  ),
  route('DELETE', '/api/v1/goals/:user_id', writes(), async ({ tenant, ifMatch }, userId) =>
    ok(await deleteGoal(ports.goals, tenant, userId, ifMatch), 'Goal deleted'),
  ),
  route('GET', '/api/v1/skills', reads(PageQuery), async ({ tenant, query }) =>
    ok(await listSkills(ports.skills, tenant, query)),
  ),
  route('GET', '/api/v1/skills/:skill_id', reads(), async ({ tenant }, skillId) =>
    tagged(await readSkill(ports.skills, tenant, skillId)),
  ),
  route('PUT', '/api/v1/skills/:skill_id', administers(smallBody(SkillRequest)), async (call, skillId) =>
    tagged(
      await putSkill(ports.skills, call.tenant, skillId, parseJson(call.body), call.ifMatch),
      'Skill set',
    ),
  ),
  route('DELETE', '/api/v1/skills/:skill_id', administers(), async ({ tenant, ifMatch }, skillId) =>
    ok(await deleteSkill(ports.skills, tenant, skillId, ifMatch), 'Skill deleted'),
  ),
  route('GET', '/api/v1/learners/:user_id/attempts', reads(PageQuery), async ({ tenant, query }, userId) =>
    ok(await listAttempts(ports.attempts, tenant, userId, query)),
  ),
  route('DELETE', '/api/v1/learners/:user_id/attempts/:event_id', writes(), async (call, userId, eventId) =>
    ok(await retractAnswer(ports.retraction, call.tenant, userId, eventId), 'Answer taken back'),
  ),
  route('GET', '/api/v1/learners/:user_id/export', administers(), async ({ tenant }, userId) => {
    const { lines, release } = await ports.exportLearner(tenant, userId);
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return { status: 200, body: '', headers, pieces: lines, onOver: release };
  }),
  route('DELETE', '/api/v1/learners/:user_id', administers(), async ({ tenant }, userId) =>
    ok(await eraseLearner(ports.erasures, tenant, userId), 'Erasure begun', 202),
  ),
  route('GET', '/api/v1/erasures/:erasure_id', administers(), async ({ tenant }, erasureId) =>
    ok(await readErasure(ports.erasures, tenant, erasureId)),
  ),
  ...webhookRoutes(ports.webhooks),
  route('GET', '/api/v1/xapi-mapping', administers(), async ({ tenant }) =>
    tagged(await getMapping(ports.mappings, tenant)),
  ),
  route(
    'PUT',
    '/api/v1/xapi-mapping',
    administers(bodyOf(largeBytes, { [json]: MappingRequest })),
    async ({ tenant, body, ifMatch }) =>
      tagged(
        await putMapping(ports.mappings, tenant, await parseLarge(body, maxMappingValues), ifMatch),
        'Mapping set',
      ),
  ),
  route('POST', '/xapi/statements', { ...writes(statements), protocol: xapi }, async ({ tenant, body }) => {
    const sent = await parseLarge(body, maxStatementValues);
    return plainReply(await recordStatements(ports.statements, tenant, sent));
  }),
  route(
    'PUT',
    '/xapi/statements',
    { ...writes(statements), query: StatementQuery, protocol: xapi },
    async ({ tenant, body, query: { statementId } }) => {
      const sent = await parseLarge(body, maxStatementValues);
      await putStatement(ports.statements, tenant, statementId, sent);
      return { status: 204, body: '' };
    },
  ),
  route('GET', '/xapi/about', { protocol: xapi }, () => plainReply({ version: ['1.0.3'] })),
  route('GET', '/api/v1/health', {}, () => healthReply(ports.health)),
  route('GET', '/livez', {}, () => probeReply(ports.health.livez(), 'ok')),
  route('GET', '/readyz', {}, async () => probeReply(await ports.health.readyz(), 'ready')),
  route('GET', '/metrics', {}, async () => ({
    status: 200,
    body: await ports.metrics(),
    headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
  })),
];

const webhookRoutes = (ports: RoutePorts['webhooks']): readonly Route[] => [
  route('POST', '/api/v1/webhooks', administers(smallBody(NewWebhook)), async ({ tenant, body }) =>
    ok(await createWebhook(ports, tenant, parseJson(body)), 'Webhook created', 201),
  ),
  route('GET', '/api/v1/webhooks', administersPages, async ({ tenant, query }) =>
    ok(await listWebhooks(ports, tenant, query)),
  ),
  route('GET', '/api/v1/webhooks/:webhook_id', administers(), async ({ tenant }, id) =>
    ok(await readWebhook(ports, tenant, id)),
  ),
  route(
    'PATCH',
    '/api/v1/webhooks/:webhook_id',
    administers(smallBody(WebhookChange)),
    async ({ tenant, body }, id) =>
      ok(await changeWebhook(ports, tenant, id, parseJson(body)), 'Webhook changed'),
  ),
  route('DELETE', '/api/v1/webhooks/:webhook_id', administers(), async ({ tenant }, id) =>
    ok(await deleteWebhook(ports, tenant, id), 'Webhook deleted'),
  ),
  route(
    'POST',
    '/api/v1/webhooks/:webhook_id/rotate-secret',
    administers({ ...smallBody(Rotation), optional: true }),
    async (call, id) => ok(await rotateSecret(ports, call.tenant, id, call.body), 'Secret rotated'),
  ),
  route('POST', '/api/v1/webhooks/:webhook_id/test', administers(), async ({ tenant }, id) =>
    ok(await testWebhook(ports, tenant, id), 'Test on its way', 202),
  ),
  route('GET', '/api/v1/webhooks/:webhook_id/deliveries', administersPages, async ({ tenant, query }, id) =>
    ok(await listDeliveries(ports, tenant, id, query)),
  ),
  route(
    'POST',
    '/api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver',
    administers(),
    async ({ tenant }, id, messageId) =>
      ok(await redeliver(ports, tenant, id, messageId), 'Message on its way', 202),
  ),
];
const plainReply = (data: object): Reply => ({ status: 200, body: JSON.stringify(data) });

/** Of a body that may be a MiB and take several slices: not with others in one turn of the loop. @throws ApiError */
async function parseLarge(body: Buffer, maxValues: number): Promise<unknown> {
  await sliceTurn();
  checkShape(body, maxValues, false);
  return parseJson(body);
}

async function healthReply(health: Health): Promise<Reply> {
  const data = await health.health();
  if (data.status !== 'down') return ok(data);
  const error = unavailable('The service cannot take answers right now');
  return { status: error.status, body: errorEnvelope(error, data), headers: error.headers, error };
}

const probeReply = (probe: { readonly status: string }, well: string): Reply => ({
  status: probe.status === well ? 200 : 503,
  body: JSON.stringify(probe),
});
