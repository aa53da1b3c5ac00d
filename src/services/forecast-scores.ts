import Type, { type Static } from 'typebox';
import type { Forecaster } from './ports.js';
import { userNotFound } from './read-mastery.js';

/** Query of GET /api/v1/predictions/{user_id}. */
export const PredictionQuery = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 365, default: 30 }),
  confidence_level: Type.Number({ minimum: 0.5, maximum: 0.99, default: 0.8 }),
});
export type PredictionQuery = Static<typeof PredictionQuery>;

/** JSON of the prediction result. @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export async function forecastScores(
  forecaster: Forecaster,
  tenant: string,
  userId: string,
  query: PredictionQuery,
): Promise<string> {
  const reply = await forecaster.forecast({
    tenant,
    userId,
    days: query.days,
    level: query.confidence_level,
  });
  if (!('data' in reply) || reply.data === null) throw userNotFound();
  return reply.data;
}
