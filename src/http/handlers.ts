/** From a checked call to its answer: one small function per route. */
import { unavailable } from '../errors.js';
import { type ExplainPorts, explainMastery } from '../services/explain-mastery.js';
import { forecastScores } from '../services/forecast-scores.js';
import type { Health } from '../services/health.js';
import type { Forecaster } from '../services/ports.js';
import { readMastery, readSkillMastery } from '../services/read-mastery.js';
import { listSkills, readSkill, type SkillPorts } from '../services/read-skills.js';
import type { AttemptRecorder } from '../services/record-attempts.js';
import { batchReply } from './batch-reply.js';
import { errorEnvelope, successEnvelope } from './envelope.js';
import { parseEvents, parseJson } from './parse.js';
import { explainQuery, predictionQuery, skillsQuery } from './query.js';
import type { Handlers, Reply } from './routes.js';

export interface HandlerPorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Forecaster;
  readonly mastery: ExplainPorts;
  readonly skills: SkillPorts;
  readonly health: Health;
}

export const createHandlers = ({
  recorder,
  forecaster,
  mastery,
  skills,
  health,
}: HandlerPorts): Handlers => ({
  trackAnswer: async ({ tenant, body, idempotencyKey }) => {
    const { data, replayed } = await recorder.recordOne(tenant, parseJson(body), idempotencyKey);
    const headers = replayed ? { 'Idempotent-Replayed': 'true' } : {};
    return {
      status: 200,
      body: successEnvelope(data, 'Answer recorded'),
      headers,
    };
  },
  trackAnswers: async ({ tenant, body, mediaType, idempotencyKey }) =>
    batchReply(await recorder.recordBatch(tenant, parseEvents(body, mediaType), idempotencyKey)),
  predictions: async ({ tenant, parameters, query }) =>
    ok(await forecastScores(forecaster, tenant, parameters[0] as string, predictionQuery(query))),
  mastery: async ({ tenant, parameters }) =>
    ok(JSON.stringify(await readMastery(mastery, tenant, parameters[0] as string))),
  skillMastery: async ({ tenant, parameters, query }) => {
    const [userId, skillId] = parameters as [string, string];
    const { explain, steps } = explainQuery(query);
    const data =
      explain === 'true'
        ? await explainMastery(mastery, tenant, userId, skillId, steps)
        : await readSkillMastery(mastery, tenant, userId, skillId);
    return ok(JSON.stringify(data));
  },
  skills: async ({ tenant, query }) =>
    ok(JSON.stringify(await listSkills(skills, tenant, skillsQuery(query)))),
  skill: async ({ tenant, parameters }) =>
    ok(JSON.stringify(await readSkill(skills, tenant, parameters[0] as string))),
  health: () => healthReply(health),
  livez: () => probeReply(health.livez(), 'ok'),
  readyz: async () => probeReply(await health.readyz(), 'ready'),
});

const ok = (data: string): Reply => ({ status: 200, body: successEnvelope(data) });

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
