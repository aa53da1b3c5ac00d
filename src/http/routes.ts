import { allScopes } from '../contracts/access.js';
import { EventLines, LearningEvent, WellFormedBatch } from '../contracts/events.js';
import { GoalBody } from '../contracts/goals.js';
import { KeyChange, NewKey } from '../contracts/keys.js';
import { SkillRequest } from '../contracts/skills.js';
import { NewWebhook, Rotation, WebhookChange } from '../contracts/webhooks.js';
import * as keys from '../services/access/manage-keys.js';
import { readAudit } from '../services/audit/audit.js';
import { deleteSkill, putSkill, type SkillWritePorts } from '../services/catalogue/write-skill.js';
import { type Erasures, eraseLearner, listErasures, readErasure } from '../services/corrections/erasures.js';
import { listParked } from '../services/corrections/parked.js';
import { type RetractionPorts, retractAnswer } from '../services/corrections/retract-answer.js';
import * as versions from '../services/models/versions.js';
import { type ClassMasteryPorts, ClassMasteryRequest, classMastery } from '../services/read/class-mastery.js';
import { type DeploymentPorts, readDeployment } from '../services/read/deployment.js';
import type { ExportLearner } from '../services/read/export-learner.js';
import * as forecasts from '../services/read/forecast-scores.js';
import { deleteGoal, type GoalPorts, putGoal, readGoal } from '../services/read/goals.js';
import type { Health } from '../services/read/health.js';
import * as attempts from '../services/read/list-attempts.js';
import { type LearnerListPorts, LearnersQuery, listLearners } from '../services/read/list-learners.js';
import { type Live, LiveQuery } from '../services/read/live.js';
import * as quality from '../services/read/model-quality.js';
import { NextItemsRequest, nextItems } from '../services/read/next-items.js';
import { PageQuery } from '../services/read/pages.js';
import {
  type ExplainPorts,
  ExplainQuery,
  readMastery,
  readSkillMastery,
} from '../services/read/read-mastery.js';
import { listSkills, readSkill } from '../services/read/read-skills.js';
import * as statistics from '../services/read/skill-statistics.js';
import { readVelocity, type VelocityPorts, VelocityQuery } from '../services/read/velocity.js';
import type { AttemptRecorder } from '../services/record/record-attempts.js';
import * as webhooks from '../services/webhooks/manage.js';
import type { MappingPorts } from '../services/xapi/mappings.js';
import type { StatementPorts } from '../services/xapi/record-statements.js';
import { batchReply, errorReply, eventReply, healthReply, ofClass, ok, okReply, tagged } from './replies.js';
import { type Reply, type Route, route } from './route.js';
import { administers, asks, bodyOf, json, largeBody, largeBytes, reads, smallBody, writes } from './rules.js';
import { xapiRoutes } from './xapi.js';

export interface RoutePorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Parameters<typeof forecasts.forecastScores>[0] & Parameters<typeof nextItems>[0];
  readonly mastery: ExplainPorts & ClassMasteryPorts;
  readonly velocity: VelocityPorts;
  readonly learners: LearnerListPorts;
  readonly goals: GoalPorts;
  readonly skills: SkillWritePorts;
  readonly overview: statistics.StatisticsPorts & quality.QualityPorts & versions.VersionPorts;
  readonly attempts: attempts.AttemptPorts;
  readonly retraction: RetractionPorts;
  readonly xapi: StatementPorts & MappingPorts;
  readonly erasures: Erasures;
  readonly exportLearner: ExportLearner;
  readonly keys: keys.KeyPorts;
  readonly parked: Parameters<typeof listParked>[0];
  readonly lastAudit: Parameters<typeof readAudit>[0];
  readonly deployment: DeploymentPorts;
  readonly webhooks: webhooks.WebhookPorts;
  readonly live: Live;
  readonly health: Health;
  readonly metrics: () => Promise<string>;
}

const events = bodyOf(largeBytes, { [json]: WellFormedBatch, 'application/x-ndjson': EventLines }, 'gzip');
/** Fits 500 ids of 128 characters, each up to twelve bytes in JSON. */
const classRequest = asks(largeBody(forecasts.ClassRequest));
const classMasteryRequest = asks(largeBody(ClassMasteryRequest));
const nextItemsRequest = asks(largeBody(NextItemsRequest));
const plan = asks(smallBody(forecasts.PlanRequest));
const goal = writes(smallBody(GoalBody));
const skill = administers(smallBody(SkillRequest));
const pages = reads(PageQuery);
const adminPages = { scope: 'admin', query: PageQuery } as const;
const operatorPages = { scope: 'operator', query: PageQuery } as const;

export const routesOf = (ports: RoutePorts): readonly Route[] => [
  ...tenantRoutes(ports),
  ...operatorRoutes(ports),
  ...webhookRoutes(ports.webhooks),
  ...xapiRoutes(ports.xapi),
  ...serviceRoutes(ports),
];

const tenantRoutes = (ports: RoutePorts): readonly Route[] => [
  route('POST /api/v1/track-answer', writes(smallBody(LearningEvent)), (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    ports.recorder.recordOne(call, (result) => call.respond(eventReply(result)));
    return undefined;
  }),
  route('POST /api/v1/track-answers', writes(events), async (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    return batchReply(await ports.recorder.recordBatch(call.mediaType === json ? 'batch' : 'lines', call));
  }),
  route(
    'GET /api/v1/predictions/:user_id',
    reads(forecasts.PredictionQuery),
    ok(forecasts.forecastScores, ports.forecaster),
  ),
  route('POST /api/v1/predictions', classRequest, ofClass(forecasts.forecastClass, ports.forecaster)),
  route('POST /api/v1/predictions/:user_id/what-if', plan, ok(forecasts.forecastWhatIf, ports.forecaster)),
  route('POST /api/v1/next-items/:user_id', nextItemsRequest, ok(nextItems, ports.forecaster)),
  route('GET /api/v1/mastery/:user_id', pages, ok(readMastery, ports.mastery)),
  route('POST /api/v1/mastery', classMasteryRequest, ofClass(classMastery, ports.mastery)),
  route('GET /api/v1/mastery/:user_id/:skill_id', reads(ExplainQuery), ok(readSkillMastery, ports.mastery)),
  route(
    'GET /api/v1/mastery/:user_id/:skill_id/history',
    pages,
    ok(attempts.listSkillAnswers, ports.attempts),
  ),
  route('GET /api/v1/velocity/:user_id', reads(VelocityQuery), ok(readVelocity, ports.velocity)),
  route('GET /api/v1/goals/:user_id', reads(), tagged(readGoal, ports.goals)),
  route('PUT /api/v1/goals/:user_id', goal, tagged(putGoal, ports.goals, 'Goal set')),
  route('DELETE /api/v1/goals/:user_id', writes(), ok(deleteGoal, ports.goals, 'Goal deleted')),
  route('GET /api/v1/skills', pages, ok(listSkills, ports.skills)),
  route('GET /api/v1/skills/:skill_id', reads(), tagged(readSkill, ports.skills)),
  route('PUT /api/v1/skills/:skill_id', skill, tagged(putSkill, ports.skills, 'Skill set')),
  route('DELETE /api/v1/skills/:skill_id', administers(), ok(deleteSkill, ports.skills, 'Skill deleted')),
  route('GET /api/v1/learners', reads(LearnersQuery), ok(listLearners, ports.learners)),
  ...overviewRoutes(ports.overview),
  route('GET /api/v1/learners/:user_id/attempts', pages, ok(attempts.listAttempts, ports.attempts)),
  route(
    'DELETE /api/v1/learners/:user_id/attempts/:event_id',
    writes(),
    ok(retractAnswer, ports.retraction, 'Answer taken back'),
  ),
  route('GET /api/v1/learners/:user_id/export', administers(), async ({ tenant }, userId) => {
    const { lines, release } = await ports.exportLearner(tenant, userId);
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return { status: 200, body: '', headers, pieces: lines, onOver: release };
  }),
  route(
    'DELETE /api/v1/learners/:user_id',
    administers(),
    ok(eraseLearner, ports.erasures, 'Erasure begun', 202),
  ),
  route('GET /api/v1/erasures', adminPages, ok(listErasures, ports.erasures)),
  route('GET /api/v1/erasures/:erasure_id', administers(), ok(readErasure, ports.erasures)),
];

const rollback = { scope: 'operator', body: smallBody(versions.RollbackRequest) } as const;

const overviewRoutes = (ports: RoutePorts['overview']): readonly Route[] => [
  route('GET /api/v1/skill-statistics', pages, ok(statistics.listSkillStatistics, ports)),
  route('GET /api/v1/skills/:skill_id/statistics', reads(), ok(statistics.readSkillStatistics, ports)),
  route('GET /api/v1/skills/:skill_id/items', pages, ok(statistics.listSkillItems, ports)),
  route('GET /api/v1/model/versions', pages, ok(versions.listVersions, ports)),
  route('GET /api/v1/model/versions/:version', pages, ok(versions.readVersion, ports)),
  route('GET /api/v1/model/reliability', reads(quality.ReliabilityQuery), ok(quality.readReliability, ports)),
  route('GET /api/v1/model/coverage', reads(), ok(quality.readCoverage, ports)),
  route('POST /api/v1/model/rollback', rollback, ok(versions.rollBack, ports, 'Version in force')),
];

const keepers = ['admin', 'operator'] as const;
const newKey = { scope: keepers, body: smallBody(NewKey) };
const keyChange = { scope: keepers, body: smallBody(KeyChange) };

const operatorRoutes = (ports: RoutePorts): readonly Route[] => [
  route('GET /api/v1/key', { scope: allScopes }, ok(keys.readOwnKey, ports.keys)),
  route('GET /api/v1/keys', { scope: keepers, query: keys.KeyQuery }, ok(keys.listKeys, ports.keys)),
  route('POST /api/v1/keys', newKey, ok(keys.createKey, ports.keys, 'Key created', 201)),
  route('PATCH /api/v1/keys/:key_id', keyChange, ok(keys.changeQuota, ports.keys, 'Quota set')),
  route('DELETE /api/v1/keys/:key_id', { scope: keepers }, ok(keys.revokeKey, ports.keys, 'Key revoked')),
  route('GET /api/v1/parked', operatorPages, ok(listParked, ports.parked)),
  route('POST /api/v1/parked/redrive', { scope: 'operator' }, async () =>
    okReply(await ports.parked.redrive(await ports.parked.streams(null)), 'Rows put back'),
  ),
  route('GET /api/v1/audits', { scope: 'operator' }, ok(readAudit, ports.lastAudit)),
  route('GET /api/v1/deployment', { scope: 'operator' }, ok(readDeployment, ports.deployment)),
];

const endpoint = '/api/v1/webhooks/:webhook_id';
const newWebhook = administers(smallBody(NewWebhook));
const change = administers(smallBody(WebhookChange));
const rotation = administers({ ...smallBody(Rotation), optional: true });

const webhookRoutes = (ports: webhooks.WebhookPorts): readonly Route[] => [
  route('POST /api/v1/webhooks', newWebhook, ok(webhooks.createWebhook, ports, 'Webhook created', 201)),
  route('GET /api/v1/webhooks', adminPages, ok(webhooks.listWebhooks, ports)),
  route(`GET ${endpoint}`, administers(), ok(webhooks.readWebhook, ports)),
  route(`PATCH ${endpoint}`, change, ok(webhooks.changeWebhook, ports, 'Webhook changed')),
  route(`DELETE ${endpoint}`, administers(), ok(webhooks.deleteWebhook, ports, 'Webhook deleted')),
  route(`POST ${endpoint}/rotate-secret`, rotation, ok(webhooks.rotateSecret, ports, 'Secret rotated')),
  route(`POST ${endpoint}/test`, administers(), ok(webhooks.testWebhook, ports, 'Test on its way', 202)),
  route(`GET ${endpoint}/deliveries`, adminPages, ok(webhooks.listDeliveries, ports)),
  route(
    `POST ${endpoint}/deliveries/:message_id/redeliver`,
    administers(),
    ok(webhooks.redeliver, ports, 'Message on its way', 202),
  ),
];

const serviceRoutes = (ports: RoutePorts): readonly Route[] => [
  route('GET /api/v1/live', { scope: 'operator', query: LiveQuery }, ({ grant, query }) => {
    const { events, release } = ports.live.open(grant, query);
    const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' };
    return { status: 200, body: '', headers, pieces: events, onOver: release, goesOn: true };
  }),
  route('GET /api/v1/health', {}, async () => healthReply(await ports.health.health())),
  route('GET /livez', {}, () => probeReply(ports.health.livez(), 'ok')),
  route('GET /readyz', {}, async () => probeReply(await ports.health.readyz(), 'ready')),
  route('GET /metrics', {}, async () => ({
    status: 200,
    body: await ports.metrics(),
    headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
  })),
];

const probeReply = (probe: { readonly status: string }, well: string): Reply => ({
  status: probe.status === well ? 200 : 503,
  body: JSON.stringify(probe),
});
