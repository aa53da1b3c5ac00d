import { allScopes } from '../contracts/access/access.js';
import { KeyChange, NewKey } from '../contracts/access/keys.js';
import { BatchRequest, EventLines, LearningEvent } from '../contracts/answers/events.js';
import { SkillRequest } from '../contracts/catalogue/skills.js';
import { SettingsRequest } from '../contracts/catalogue/time-zones.js';
import { GoalBody } from '../contracts/learners/goals.js';
import * as keys from '../services/access/manage-keys.js';
import type { AttemptRecorder } from '../services/answers/record-attempts.js';
import { type AuditPorts, readAudit, startAudit } from '../services/audit/run-audit.js';
import { putSettings, readSettings, type SettingPorts } from '../services/catalogue/manage-settings.js';
import { listSkills, readSkill } from '../services/catalogue/read-skills.js';
import * as statistics from '../services/catalogue/skill-statistics.js';
import { deleteSkill, putSkill, type SkillWritePorts } from '../services/catalogue/write-skill.js';
import {
  type ClassMasteryPorts,
  ClassMasteryRequest,
  readClassMastery,
} from '../services/classes/read-class-mastery.js';
import {
  type ErasurePorts,
  eraseLearner,
  listErasures,
  readErasure,
} from '../services/corrections/erasures.js';
import { listParked } from '../services/corrections/list-parked.js';
import { type RetractionPorts, retractAnswer } from '../services/corrections/retract-answer.js';
import * as forecasts from '../services/forecasts/forecast-scores.js';
import { NextItemsRequest, selectNextItems } from '../services/forecasts/next-items.js';
import { deleteGoal, type GoalPorts, putGoal, readGoal } from '../services/goals/manage-goals.js';
import type { ExportLearner } from '../services/learners/export-learner.js';
import * as attempts from '../services/learners/list-attempts.js';
import { type LearnerListPorts, LearnersQuery, listLearners } from '../services/learners/list-learners.js';
import {
  type ExplainPorts,
  ExplainQuery,
  readMastery,
  readSkillMastery,
} from '../services/learners/read-mastery.js';
import { readVelocity, type VelocityPorts, VelocityQuery } from '../services/learners/read-velocity.js';
import * as quality from '../services/models/model-quality.js';
import * as versions from '../services/models/model-versions.js';
import type { Health } from '../services/operations/health.js';
import { type HistoryPorts, HistoryQuery, readLiveHistory } from '../services/operations/live-history.js';
import { LiveQuery, type LiveStream } from '../services/operations/live-stream.js';
import { listActivity } from '../services/operations/read-activity.js';
import { type DeploymentPorts, readDeployment } from '../services/operations/read-deployment.js';
import { PageQuery } from '../services/paging/pages.js';
import type { WebhookPorts } from '../services/webhooks/manage-webhooks.js';
import type { MappingPorts } from '../services/xapi/manage-mapping.js';
import type { StatementPorts } from '../services/xapi/record-statements.js';
import { createGroupRoutes, type GroupRoutePorts } from './group-routes.js';
import {
  createBatchReply,
  createErrorReply,
  createEventReply,
  createHealthReply,
  createOkReply,
  handleClass,
  handleJson,
  handleTagged,
} from './replies.js';
import { type Reply, type Route, route } from './route.js';
import {
  allowAdmin,
  allowRead,
  allowReadWithBody,
  allowWrite,
  createBodyRules,
  jsonMediaType,
  largeBody,
  largeBytes,
  smallBody,
} from './route-rules.js';
import { createWebhookRoutes } from './webhook-routes.js';
import { createXapiRoutes } from './xapi.js';

export interface RoutePorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Parameters<typeof forecasts.forecastScores>[0] & Parameters<typeof selectNextItems>[0];
  readonly mastery: ExplainPorts & ClassMasteryPorts;
  readonly velocity: VelocityPorts;
  readonly learners: LearnerListPorts;
  readonly goals: GoalPorts;
  readonly groups: GroupRoutePorts;
  readonly settings: SettingPorts;
  readonly skills: SkillWritePorts;
  readonly overview: statistics.StatisticsPorts & quality.QualityPorts & versions.VersionPorts;
  readonly attempts: attempts.AttemptPorts;
  readonly retraction: RetractionPorts;
  readonly xapi: StatementPorts & MappingPorts;
  readonly erasures: ErasurePorts;
  readonly exportLearner: ExportLearner;
  readonly keys: keys.KeyPorts;
  readonly parked: Parameters<typeof listParked>[0];
  readonly audits: AuditPorts;
  readonly activity: Parameters<typeof listActivity>[0];
  readonly history: HistoryPorts;
  readonly deployment: DeploymentPorts;
  readonly webhooks: WebhookPorts;
  readonly live: LiveStream;
  readonly health: Health;
  readonly metrics: () => Promise<string>;
}

const events = createBodyRules(
  largeBytes,
  { [jsonMediaType]: BatchRequest, 'application/x-ndjson': EventLines },
  'gzip',
);
/** Fits 500 ids of 128 characters, each up to twelve bytes in JSON. */
const classRequest = allowReadWithBody(largeBody(forecasts.ClassForecastRequest));
const classMasteryRequest = allowReadWithBody(largeBody(ClassMasteryRequest));
const nextItemsRequest = allowReadWithBody(largeBody(NextItemsRequest));
const plan = allowReadWithBody(smallBody(forecasts.WhatIfRequest));
const goal = allowWrite(smallBody(GoalBody));
const settings = allowAdmin(smallBody(SettingsRequest), 'settings.saved');
const skill = allowAdmin(smallBody(SkillRequest), 'skill.saved');
const pages = allowRead(PageQuery);
const adminPages = { scope: 'admin', query: PageQuery } as const;
const operatorPages = { scope: 'operator', query: PageQuery } as const;

export const createRoutes = (ports: RoutePorts): readonly Route[] => [
  ...tenantRoutes(ports),
  ...createGroupRoutes(ports.groups),
  ...operatorRoutes(ports),
  ...createWebhookRoutes(ports.webhooks),
  ...createXapiRoutes(ports.xapi),
  ...serviceRoutes(ports),
];

const tenantRoutes = (ports: RoutePorts): readonly Route[] => [
  route('POST /api/v1/track-answer', allowWrite(smallBody(LearningEvent)), (call) => {
    const overload = ports.recorder.findOverload(call.tenant);
    if (overload !== null) return createErrorReply(overload);
    ports.recorder.recordOne(call, (result) => call.respond(createEventReply(result)));
    return undefined;
  }),
  route('POST /api/v1/track-answers', allowWrite(events), async (call) => {
    const overload = ports.recorder.findOverload(call.tenant);
    if (overload !== null) return createErrorReply(overload);
    return createBatchReply(
      await ports.recorder.recordBatch(call.mediaType === jsonMediaType ? 'batch' : 'lines', call),
    );
  }),
  route(
    'GET /api/v1/predictions/:user_id',
    allowRead(forecasts.PredictionQuery),
    handleJson(forecasts.forecastScores, ports.forecaster),
  ),
  route('POST /api/v1/predictions', classRequest, handleClass(forecasts.forecastClass, ports.forecaster)),
  route(
    'POST /api/v1/predictions/:user_id/what-if',
    plan,
    handleJson(forecasts.forecastWhatIf, ports.forecaster),
  ),
  route('POST /api/v1/next-items/:user_id', nextItemsRequest, handleJson(selectNextItems, ports.forecaster)),
  route('GET /api/v1/mastery/:user_id', pages, handleJson(readMastery, ports.mastery)),
  route('POST /api/v1/mastery', classMasteryRequest, handleClass(readClassMastery, ports.mastery)),
  route(
    'GET /api/v1/mastery/:user_id/:skill_id',
    allowRead(ExplainQuery),
    handleJson(readSkillMastery, ports.mastery),
  ),
  route(
    'GET /api/v1/mastery/:user_id/:skill_id/history',
    pages,
    handleJson(attempts.listSkillAnswers, ports.attempts),
  ),
  route('GET /api/v1/velocity/:user_id', allowRead(VelocityQuery), handleJson(readVelocity, ports.velocity)),
  route('GET /api/v1/goals/:user_id', allowRead(), handleTagged(readGoal, ports.goals)),
  route('PUT /api/v1/goals/:user_id', goal, handleTagged(putGoal, ports.goals, 'Goal set')),
  route('DELETE /api/v1/goals/:user_id', allowWrite(), handleJson(deleteGoal, ports.goals, 'Goal deleted')),
  route('GET /api/v1/settings', allowRead(), handleJson(readSettings, ports.settings)),
  route('PUT /api/v1/settings', settings, handleJson(putSettings, ports.settings, 'Settings saved', 202)),
  route('GET /api/v1/skills', pages, handleJson(listSkills, ports.skills)),
  route('GET /api/v1/skills/:skill_id', allowRead(), handleTagged(readSkill, ports.skills)),
  route('PUT /api/v1/skills/:skill_id', skill, handleTagged(putSkill, ports.skills, 'Skill saved')),
  route(
    'DELETE /api/v1/skills/:skill_id',
    allowAdmin(null, 'skill.deleted'),
    handleJson(deleteSkill, ports.skills, 'Skill deleted'),
  ),
  route('GET /api/v1/learners', allowRead(LearnersQuery), handleJson(listLearners, ports.learners)),
  ...overviewRoutes(ports.overview),
  route('GET /api/v1/learners/:user_id/attempts', pages, handleJson(attempts.listAttempts, ports.attempts)),
  route(
    'DELETE /api/v1/learners/:user_id/attempts/:event_id',
    allowWrite(),
    handleJson(retractAnswer, ports.retraction, 'Answer retracted'),
  ),
  route('GET /api/v1/learners/:user_id/export', allowAdmin(), async ({ tenant }, userId) => {
    const { lines, release } = await ports.exportLearner(tenant, userId);
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return { status: 200, body: '', headers, pieces: lines, onEnd: release };
  }),
  route(
    'DELETE /api/v1/learners/:user_id',
    allowAdmin(null, 'erasure.started'),
    handleJson(eraseLearner, ports.erasures, 'Erasure started', 202),
  ),
  route('GET /api/v1/erasures', adminPages, handleJson(listErasures, ports.erasures)),
  route('GET /api/v1/erasures/:erasure_id', allowAdmin(), handleJson(readErasure, ports.erasures)),
];

const rollback = {
  scope: 'operator',
  body: smallBody(versions.RollbackRequest),
  activity: 'model.rolled_back',
} as const;

const overviewRoutes = (ports: RoutePorts['overview']): readonly Route[] => [
  route('GET /api/v1/skill-statistics', pages, handleJson(statistics.listSkillStatistics, ports)),
  route(
    'GET /api/v1/skills/:skill_id/statistics',
    allowRead(),
    handleJson(statistics.readSkillStatistics, ports),
  ),
  route('GET /api/v1/skills/:skill_id/items', pages, handleJson(statistics.listSkillItems, ports)),
  route('GET /api/v1/model/versions', pages, handleJson(versions.listVersions, ports)),
  route('GET /api/v1/model/versions/:version', pages, handleJson(versions.readVersion, ports)),
  route(
    'GET /api/v1/model/reliability',
    allowRead(quality.ReliabilityQuery),
    handleJson(quality.readReliability, ports),
  ),
  route(
    'GET /api/v1/model/coverage',
    allowRead(quality.CoverageQuery),
    handleJson(quality.readCoverage, ports),
  ),
  route('POST /api/v1/model/rollback', rollback, handleJson(versions.rollBack, ports, 'Version activated')),
];

const keyManagers = ['admin', 'operator'] as const;
const newKey = { scope: keyManagers, body: smallBody(NewKey), activity: 'key.created' } as const;
const keyChange = { scope: keyManagers, body: smallBody(KeyChange), activity: 'key.changed' } as const;

const operatorRoutes = (ports: RoutePorts): readonly Route[] => [
  route('GET /api/v1/key', { scope: allScopes }, handleJson(keys.readCallerKey, ports.keys)),
  route(
    'GET /api/v1/keys',
    { scope: keyManagers, query: keys.KeyQuery },
    handleJson(keys.listKeys, ports.keys),
  ),
  route('POST /api/v1/keys', newKey, handleJson(keys.createKey, ports.keys, 'Key created', 201)),
  route('PATCH /api/v1/keys/:key_id', keyChange, handleJson(keys.changeKey, ports.keys, 'Key changed')),
  route(
    'DELETE /api/v1/keys/:key_id',
    { scope: keyManagers, activity: 'key.revoked' },
    handleJson(keys.revokeKey, ports.keys, 'Key revoked'),
  ),
  route('GET /api/v1/parked', operatorPages, handleJson(listParked, ports.parked)),
  route('POST /api/v1/parked/redrive', { scope: 'operator', activity: 'rows.redriven' }, async () =>
    createOkReply(await ports.parked.redrive(await ports.parked.listStreams(null)), 'Rows requeued'),
  ),
  route('GET /api/v1/audits', { scope: 'operator' }, handleJson(readAudit, ports.audits)),
  route(
    'POST /api/v1/audits',
    { scope: 'operator', activity: 'audit.started' },
    handleJson(startAudit, ports.audits, 'Audit started', 202),
  ),
  route(
    'GET /api/v1/activity',
    { scope: keyManagers, query: PageQuery },
    handleJson(listActivity, ports.activity),
  ),
  route('GET /api/v1/deployment', { scope: 'operator' }, handleJson(readDeployment, ports.deployment)),
];

const serviceRoutes = (ports: RoutePorts): readonly Route[] => [
  route('GET /api/v1/live', { scope: 'operator', query: LiveQuery }, ({ grant, query }) => {
    const { events, release } = ports.live.open(grant, query);
    const headers = { 'Content-Type': 'text/event-stream' };
    return { status: 200, body: '', headers, pieces: events, onEnd: release, isEndless: true };
  }),
  route(
    'GET /api/v1/live/history',
    { scope: 'operator', query: HistoryQuery },
    handleJson(readLiveHistory, ports.history),
  ),
  route('GET /api/v1/health', {}, async () => createHealthReply(await ports.health.health())),
  route('GET /livez', {}, () => createProbeReply(ports.health.livez(), 'ok')),
  route('GET /readyz', {}, async () => createProbeReply(await ports.health.readyz(), 'ready')),
  route('GET /metrics', {}, async () => ({
    status: 200,
    body: await ports.metrics(),
    headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
  })),
];

const createProbeReply = (probe: { readonly status: string }, successStatus: string): Reply => ({
  status: probe.status === successStatus ? 200 : 503,
  body: JSON.stringify(probe),
});
