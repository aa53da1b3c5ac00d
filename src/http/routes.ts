/** All routes of the API: scope, body, query and service. */
import { EventLines, LearningEvent, WellFormedBatch } from '../contracts/events.js';
import { GoalBody } from '../contracts/goals.js';
import { SkillRequest } from '../contracts/skills.js';
import { unavailable } from '../errors.js';
import { deleteSkill, putSkill, type SkillDeletePorts } from '../services/catalogue/write-skill.js';
import { type Erasures, eraseLearner, listErasures, readErasure } from '../services/corrections/erasures.js';
import { type RetractionPorts, retractAnswer } from '../services/corrections/retract-answer.js';
import { type ClassMasteryPorts, ClassMasteryRequest, classMastery } from '../services/read/class-mastery.js';
import type { ExportLearner } from '../services/read/export-learner.js';
import * as forecasts from '../services/read/forecast-scores.js';
import * as goals from '../services/read/goals.js';
import type { Health } from '../services/read/health.js';
import * as attempts from '../services/read/list-attempts.js';
import { type LearnerListPorts, LearnersQuery, listLearners } from '../services/read/list-learners.js';
import { type Live, LiveQuery } from '../services/read/live.js';
import { NextItemsRequest, nextItems } from '../services/read/next-items.js';
import { PageQuery } from '../services/read/pages.js';
import * as mastery from '../services/read/read-mastery.js';
import { listSkills, readSkill } from '../services/read/read-skills.js';
import { readVelocity, type VelocityPorts, VelocityQuery } from '../services/read/velocity.js';
import type { AttemptRecorder } from '../services/record/record-attempts.js';
import type { WebhookPorts } from '../services/webhooks/manage.js';
import type { MappingPorts } from '../services/xapi/mappings.js';
import type { StatementPorts } from '../services/xapi/record-statements.js';
import { type OperatorPorts, operatorRoutes } from './operator-routes.js';
import { type OverviewPorts, overviewRoutes } from './overview-routes.js';
import {
  batchReply,
  errorEnvelope,
  errorReply,
  eventReply,
  ofClass,
  ok,
  okReply,
  tagged,
} from './replies.js';
import { type Reply, type Route, route } from './route.js';
import { administers, bodyOf, json, largeBytes, reads, smallBody, writes } from './rules.js';
import { webhookRoutes } from './webhook-routes.js';
import { xapiRoutes } from './xapi.js';

export interface RoutePorts extends OperatorPorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Parameters<typeof forecasts.forecastScores>[0] & Parameters<typeof nextItems>[0];
  readonly mastery: mastery.ExplainPorts & ClassMasteryPorts;
  readonly velocity: VelocityPorts;
  readonly learners: LearnerListPorts;
  readonly goals: goals.GoalPorts;
  readonly skills: SkillDeletePorts;
  readonly overview: OverviewPorts;
  readonly attempts: attempts.AttemptPorts & attempts.SkillAnswerPorts;
  readonly retraction: RetractionPorts;
  readonly xapi: StatementPorts & MappingPorts;
  readonly erasures: Erasures;
  readonly exportLearner: ExportLearner;
  readonly webhooks: WebhookPorts;
  readonly live: Live;
  readonly health: Health;
  readonly metrics: () => Promise<string>;
}

const eventBatch = bodyOf(
  largeBytes,
  { [json]: WellFormedBatch, 'application/x-ndjson': EventLines },
  'gzip',
);
/** 500 ids of 128 characters, each of up to twelve bytes as JSON escapes. */
const classRequest = bodyOf(largeBytes, { [json]: forecasts.ClassRequest });
const classMasteryRequest = bodyOf(largeBytes, { [json]: ClassMasteryRequest });
const nextItemsRequest = bodyOf(largeBytes, { [json]: NextItemsRequest });

export const routesOf = (ports: RoutePorts): readonly Route[] => [
  route('POST /api/v1/track-answer', writes(smallBody(LearningEvent)), (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    ports.recorder.recordOne(call, (result) => call.respond(eventReply(result)));
    return undefined;
  }),
  route('POST /api/v1/track-answers', writes(eventBatch), async (call) => {
    const full = ports.recorder.full(call.tenant);
    if (full !== null) return errorReply(full);
    return batchReply(await ports.recorder.recordBatch(call.mediaType === json ? 'batch' : 'lines', call));
  }),
  route(
    'GET /api/v1/predictions/:user_id',
    reads(forecasts.PredictionQuery),
    ok(forecasts.forecastScores, ports.forecaster),
  ),
  route(
    'POST /api/v1/predictions',
    { scope: 'read', body: classRequest },
    ofClass(forecasts.forecastClass, ports.forecaster),
  ),
  route(
    'POST /api/v1/predictions/:user_id/what-if',
    { scope: 'read', body: smallBody(forecasts.PlanRequest) },
    ok(forecasts.forecastWhatIf, ports.forecaster),
  ),
  route(
    'POST /api/v1/next-items/:user_id',
    { scope: 'read', body: nextItemsRequest },
    ok(nextItems, ports.forecaster),
  ),
  route('GET /api/v1/mastery/:user_id', reads(PageQuery), ok(mastery.readMastery, ports.mastery)),
  route(
    'POST /api/v1/mastery',
    { scope: 'read', body: classMasteryRequest },
    ofClass(classMastery, ports.mastery),
  ),
  route(
    'GET /api/v1/mastery/:user_id/:skill_id',
    reads(mastery.ExplainQuery),
    ok(mastery.readSkillMastery, ports.mastery),
  ),
  route(
    'GET /api/v1/mastery/:user_id/:skill_id/history',
    reads(PageQuery),
    ok(attempts.listSkillAnswers, ports.attempts),
  ),
  route('GET /api/v1/velocity/:user_id', reads(VelocityQuery), ok(readVelocity, ports.velocity)),
  route('GET /api/v1/goals/:user_id', reads(), tagged(goals.readGoal, ports.goals)),
  route(
    'PUT /api/v1/goals/:user_id',
    writes(smallBody(GoalBody)),
    tagged(goals.putGoal, ports.goals, 'Goal set'),
  ),
  route('DELETE /api/v1/goals/:user_id', writes(), ok(goals.deleteGoal, ports.goals, 'Goal deleted')),
  route('GET /api/v1/skills', reads(PageQuery), ok(listSkills, ports.skills)),
  route('GET /api/v1/skills/:skill_id', reads(), tagged(readSkill, ports.skills)),
  route(
    'PUT /api/v1/skills/:skill_id',
    administers(smallBody(SkillRequest)),
    tagged(putSkill, ports.skills, 'Skill set'),
  ),
  route('DELETE /api/v1/skills/:skill_id', administers(), ok(deleteSkill, ports.skills, 'Skill deleted')),
  route('GET /api/v1/learners', reads(LearnersQuery), ok(listLearners, ports.learners)),
  ...overviewRoutes(ports.overview),
  route(
    'GET /api/v1/learners/:user_id/attempts',
    reads(PageQuery),
    ok(attempts.listAttempts, ports.attempts),
  ),
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
  route('GET /api/v1/erasures', { scope: 'admin', query: PageQuery }, ok(listErasures, ports.erasures)),
  route('GET /api/v1/erasures/:erasure_id', administers(), ok(readErasure, ports.erasures)),
  ...operatorRoutes(ports),
  ...webhookRoutes(ports.webhooks),
  ...xapiRoutes(ports.xapi),
  route('GET /api/v1/live', { scope: 'operator', query: LiveQuery }, ({ grant, query }) => {
    const { events, release } = ports.live.open(grant, query);
    const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' };
    return { status: 200, body: '', headers, pieces: events, onOver: release, goesOn: true };
  }),
  route('GET /api/v1/health', {}, () => healthReply(ports.health)),
  route('GET /livez', {}, () => probeReply(ports.health.livez(), 'ok')),
  route('GET /readyz', {}, async () => probeReply(await ports.health.readyz(), 'ready')),
  route('GET /metrics', {}, async () => ({
    status: 200,
    body: await ports.metrics(),
    headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
  })),
];

async function healthReply(health: Health): Promise<Reply> {
  const data = await health.health();
  if (data.status !== 'down') return okReply(data);
  const error = unavailable('The service cannot take answers right now');
  return { status: error.status, body: errorEnvelope(error, data), headers: error.headers, error };
}

const probeReply = (probe: { readonly status: string }, well: string): Reply => ({
  status: probe.status === well ? 200 : 503,
  body: JSON.stringify(probe),
});
