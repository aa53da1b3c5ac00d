/** From a checked call to its answer: one small function per route. */
import { checkShape, parseJson } from '../contracts/json.js';
import { type Tagged, tagHeader } from '../contracts/preconditions.js';
import type { SubmissionForm } from '../contracts/tasks.js';
import { ApiError, unavailable } from '../errors.js';
import { deleteSkill, putSkill, type SkillDeletePorts } from '../services/catalogue/write-skill.js';
import { type ErasurePorts, eraseLearner, readErasure } from '../services/corrections/erasures.js';
import { type TakeBackPorts, takeBackAnswer } from '../services/corrections/take-back.js';
import { type ExplainPorts, explainMastery } from '../services/read/explain-mastery.js';
import type { ExportLearner } from '../services/read/export-learner.js';
import { forecastClass, forecastScores, forecastWhatIf } from '../services/read/forecast-scores.js';
import { deleteGoal, type GoalPorts, putGoal, readGoal } from '../services/read/goals.js';
import type { Health } from '../services/read/health.js';
import { type AttemptPorts, listAttempts } from '../services/read/list-attempts.js';
import { readMastery, readSkillMastery } from '../services/read/read-mastery.js';
import { listSkills, readSkill } from '../services/read/read-skills.js';
import { readVelocity, type VelocityPorts } from '../services/read/velocity.js';
import type { AttemptRecorder, Recorded } from '../services/record/record-attempts.js';
import { sliceTurn } from '../slices.js';
import { batchReply } from './batch-reply.js';
import { classReply } from './class-reply.js';
import { errorEnvelope, errorReply, successEnvelope } from './envelope.js';
import { explainQuery, pageQuery, predictionQuery, velocityQuery } from './query.js';
import type { Call, Handlers, Reply } from './routes.js';

export interface HandlerPorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Parameters<typeof forecastScores>[0];
  readonly mastery: ExplainPorts;
  readonly velocity: VelocityPorts;
  readonly goals: GoalPorts;
  readonly skills: SkillDeletePorts;
  readonly attempts: AttemptPorts;
  readonly takeBack: TakeBackPorts;
  readonly erasures: ErasurePorts;
  readonly exportLearner: ExportLearner;
  readonly health: Health;
  /** Figures in the Prometheus text format. */
  readonly metrics: () => Promise<string>;
}

export const createHandlers = ({
  recorder,
  forecaster,
  mastery,
  velocity,
  goals,
  skills,
  attempts,
  takeBack,
  erasures,
  exportLearner,
  health,
  metrics,
}: HandlerPorts): Handlers => ({
  trackAnswer: (call, tell) => refusedBy(recorder, call) ?? trackAnswer(recorder, call, tell),
  trackAnswers: (call) => refusedBy(recorder, call) ?? trackAnswers(recorder, call),
  predictions: async ({ tenant, parameters, query, stillWanted }) => {
    const [userId] = parameters as [string];
    return ok(await forecastScores(forecaster, tenant, userId, predictionQuery(query), stillWanted));
  },
  classPredictions: async ({ tenant, body, stillWanted }) => {
    // What is no class may be a MiB, and take as long as a slice or several: not with others in one turn of the loop.
    await sliceTurn();
    checkShape(body, maxClassValues, false);
    return classReply(await forecastClass(forecaster, tenant, parseJson(body), stillWanted));
  },
  whatIf: async ({ tenant, parameters, body, stillWanted }) =>
    ok(await forecastWhatIf(forecaster, tenant, parameters[0] as string, parseJson(body), stillWanted)),
  mastery: async ({ tenant, parameters, query }) =>
    ok(await readMastery(mastery, tenant, parameters[0] as string, pageQuery(query))),
  skillMastery: async ({ tenant, parameters, query }) => {
    const [userId, skillId] = parameters as [string, string];
    const { explain, steps } = explainQuery(query);
    const data =
      explain === 'true'
        ? await explainMastery(mastery, tenant, userId, skillId, steps)
        : await readSkillMastery(mastery, tenant, userId, skillId);
    return ok(JSON.stringify(data));
  },
  velocity: async ({ tenant, parameters, query }) =>
    ok(JSON.stringify(await readVelocity(velocity, tenant, parameters[0] as string, velocityQuery(query)))),
  goal: async ({ tenant, parameters }) => tagged(await readGoal(goals, tenant, parameters[0] as string)),
  putGoal: async ({ tenant, parameters, body, ifMatch }) =>
    tagged(await putGoal(goals, tenant, parameters[0] as string, parseJson(body), ifMatch), 'Goal set'),
  deleteGoal: async ({ tenant, parameters, ifMatch }) =>
    ok(JSON.stringify(await deleteGoal(goals, tenant, parameters[0] as string, ifMatch)), 'Goal deleted'),
  skills: async ({ tenant, query }) => ok(await listSkills(skills, tenant, pageQuery(query))),
  skill: async ({ tenant, parameters }) => tagged(await readSkill(skills, tenant, parameters[0] as string)),
  putSkill: async ({ tenant, parameters, body, ifMatch }) =>
    tagged(await putSkill(skills, tenant, parameters[0] as string, parseJson(body), ifMatch), 'Skill set'),
  deleteSkill: async ({ tenant, parameters, ifMatch }) =>
    ok(JSON.stringify(await deleteSkill(skills, tenant, parameters[0] as string, ifMatch)), 'Skill deleted'),
  attempts: async ({ tenant, parameters, query }) =>
    ok(await listAttempts(attempts, tenant, parameters[0] as string, pageQuery(query))),
  takeBackAnswer: async ({ tenant, parameters }) => {
    const [userId, eventId] = parameters as [string, string];
    return ok(JSON.stringify(await takeBackAnswer(takeBack, tenant, userId, eventId)), 'Answer taken back');
  },
  exportLearner: async ({ tenant, parameters }) => {
    const { lines, release } = await exportLearner(tenant, parameters[0] as string);
    return { ...ndjson, pieces: lines, onOver: release };
  },
  eraseLearner: async ({ tenant, parameters }) => {
    const data = await eraseLearner(erasures, tenant, parameters[0] as string);
    return { status: 202, body: successEnvelope(JSON.stringify(data), 'Erasure begun') };
  },
  erasure: async ({ tenant, parameters }) =>
    ok(JSON.stringify(await readErasure(erasures, tenant, parameters[0] as string))),
  health: () => healthReply(health),
  livez: () => probeReply(health.livez(), 'ok'),
  readyz: async () => probeReply(await health.readyz(), 'ready'),
  metrics: async () => ({
    status: 200,
    body: await metrics(),
    headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
  }),
});

/** Far more than the ids of a class and its options. */
const maxClassValues = 5000;

function refusedBy(recorder: AttemptRecorder, { tenant }: Call): Reply | null {
  const full = recorder.full(tenant);
  return full === null ? null : errorReply(full);
}

function trackAnswer(
  recorder: AttemptRecorder,
  { tenant, body, idempotencyKey }: Call,
  tell: (reply: Reply) => void,
): undefined {
  recorder.recordOne({ tenant, body, idempotencyKey }, (result) =>
    tell(result instanceof ApiError ? errorReply(result) : recordedReply(result)),
  );
}

const recordedReply = ({ data, replayed }: Recorded): Reply => ({
  status: 200,
  body: successEnvelope(data, 'Answer recorded'),
  headers: replayed ? replayedHeader : noHeaders,
});

const noHeaders = {};
const replayedHeader = { 'Idempotent-Replayed': 'true' };

async function trackAnswers(
  recorder: AttemptRecorder,
  { tenant, body, mediaType, idempotencyKey }: Call,
): Promise<Reply> {
  return await batchReply(await recorder.recordBatch(formOf(mediaType), { tenant, body, idempotencyKey }));
}

const ndjson = { status: 200, body: '', headers: { 'Content-Type': 'application/x-ndjson' } };

const formOf = (mediaType: string): SubmissionForm => (mediaType === 'application/json' ? 'batch' : 'lines');

const ok = (data: string, message?: string): Reply => ({
  status: 200,
  body: successEnvelope(data, message),
});

const tagged = ({ value, tag }: Tagged<object>, message?: string): Reply => ({
  ...ok(JSON.stringify(value), message),
  headers: tagHeader(tag),
});

async function healthReply(health: Health): Promise<Reply> {
  const data = await health.health();
  if (data.status !== 'down') return ok(JSON.stringify(data));
  const error = unavailable('The service cannot take answers right now');
  return { status: error.status, body: errorEnvelope(error, data), headers: error.headers, error };
}

const probeReply = (probe: { readonly status: string }, well: string): Reply => ({
  status: probe.status === well ? 200 : 503,
  body: JSON.stringify(probe),
});
