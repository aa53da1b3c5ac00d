/** From a checked call to its answer: one small function per route. */
import { Compile } from 'typebox/compile';
import { problemsOf } from '../contracts/problems.js';
import { invalid, unavailable } from '../errors.js';
import { forecastScores, PredictionQuery } from '../services/forecast-scores.js';
import type { Health } from '../services/health.js';
import type { Forecaster, LearnerReader } from '../services/ports.js';
import { readMastery } from '../services/read-mastery.js';
import type { AttemptRecorder } from '../services/record-attempts.js';
import { batchReply } from './batch-reply.js';
import { errorEnvelope, successEnvelope } from './envelope.js';
import { parseEvents, parseJson } from './parse.js';
import type { Call, Handlers, Reply } from './routes.js';

export interface HandlerPorts {
  readonly recorder: AttemptRecorder;
  readonly forecaster: Forecaster;
  readonly learners: LearnerReader;
  readonly health: Health;
}

export const createHandlers = ({ recorder, forecaster, learners, health }: HandlerPorts): Handlers => ({
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
    ok(JSON.stringify(await readMastery(learners, tenant, parameters[0] as string))),
  health: () => healthReply(health),
  livez: () => probeReply(health.livez(), 'ok'),
  readyz: async () => probeReply(await health.readyz(), 'ready'),
});

const ok = (data: string): Reply => ({ status: 200, body: successEnvelope(data) });

const predictionCheck = Compile(PredictionQuery);

/** Numbers in queries are plain decimals. @throws ApiError INVALID_REQUEST */
function predictionQuery(query: Call['query']): PredictionQuery {
  const values = { days: numberOf(query.days, 30), confidence_level: numberOf(query.confidence_level, 0.8) };
  if (predictionCheck.Check(values)) return values;
  const problems = problemsOf(predictionCheck.Errors(values));
  throw invalid(
    `Invalid query: ${problems.map(({ path, message }) => `${path} ${message}`).join('; ')}`,
    problems,
  );
}

const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

function numberOf(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  return plainDecimal.test(text) ? Number(text) : Number.NaN;
}

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
