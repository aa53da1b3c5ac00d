/** Forecasts of scores: of one learner, of a class, and under a plan of practice. */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Forecaster, ForecastResult, StillWanted } from '../../compute/forecast-batcher.js';
import { checked } from '../../contracts/checked.js';
import { TargetScore } from '../../contracts/goals.js';
import { Id } from '../../contracts/ids.js';
import { orNull } from '../../contracts/optional.js';
import { locales } from '../../domain/advice/texts.js';
import { goalModel, scoreModel } from '../../domain/base/params.js';
import { standardDays } from '../../domain/score/learner-forecast.js';
import { maxAnswersPerDay } from '../../domain/score/what-if.js';
import { ApiError } from '../../errors.js';
import { userNotFound } from './read-mastery.js';

/** What a forecast is made for where nothing else is asked. */
export const forecastDefaults = {
  days: standardDays,
  level: scoreModel.defaultLevel,
  locale: locales[0],
} as const;

const Days = Type.Integer({ minimum: 1, maximum: goalModel.horizonDays, default: forecastDefaults.days });
const Level = Type.Number({ minimum: 0.5, maximum: 0.99, default: forecastDefaults.level });
const LocaleName = Type.Enum([...locales], { default: forecastDefaults.locale });

/** Query of GET /api/v1/predictions/{user_id}. */
export const PredictionQuery = Type.Object({ days: Days, confidence_level: Level, locale: LocaleName });
export type PredictionQuery = Static<typeof PredictionQuery>;

/** JSON of the prediction result. @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export async function forecastScores(
  forecaster: Forecaster,
  tenant: string,
  userId: string,
  { days, confidence_level: level, locale }: PredictionQuery,
  stillWanted: StillWanted,
): Promise<string> {
  const order = { tenant, userIds: [userId], days, level, locale };
  const [data] = await forecaster.forecast(order, stillWanted);
  if (data instanceof Error) throw data;
  return data ?? notFound();
}

function notFound(): never {
  throw userNotFound();
}

const maxLearners = 500;
/** Learners in one order: other requests get their turn between two, and nobody who has left is worked for in the next. */
const learnersPerOrder = 8;

const ClassRequest = Type.Object({
  user_ids: Type.Array(Id, { minItems: 1, maxItems: maxLearners }),
  days: orNull(Days),
  confidence_level: orNull(Level),
  locale: orNull(LocaleName),
});
const classCheck = Compile(ClassRequest);

/** What became of one learner of a class. */
export interface ClassForecast {
  readonly userId: string;
  /** JSON of the prediction result, or why there is none. */
  readonly result: string | ApiError;
}

/** @param told of one learner */
function resultOf(told: ForecastResult | undefined): ClassForecast['result'] {
  if (told instanceof Error)
    return new ApiError('INTERNAL', 'The forecast of this learner failed on our side', { cause: told });
  return told ?? userNotFound();
}

/**
 * Forecasts of up to 500 learners, in the order of the request; one that does not exist stops no other, nor does one
 * whose records cannot be read.
 *
 * @throws ApiError INVALID_REQUEST, UNAVAILABLE
 */
export async function forecastClass(
  forecaster: Forecaster,
  tenant: string,
  body: unknown,
  stillWanted: StillWanted,
): Promise<ClassForecast[]> {
  const request = checked(classCheck, body, 'request');
  const options = {
    days: request.days ?? forecastDefaults.days,
    level: request.confidence_level ?? forecastDefaults.level,
    locale: request.locale ?? forecastDefaults.locale,
  };
  const forecasts: ClassForecast[] = [];
  for (let from = 0; from < request.user_ids.length; from += learnersPerOrder) {
    const userIds = request.user_ids.slice(from, from + learnersPerOrder);
    const data = await forecaster.forecast({ tenant, userIds, ...options }, stillWanted);
    userIds.forEach((userId, i) => {
      forecasts.push({ userId, result: resultOf(data[i]) });
    });
  }
  return forecasts;
}

const maxPlanSkills = 100;

const WhatIfRequest = Type.Object({
  answers_per_day: Type.Number({ minimum: 0, maximum: maxAnswersPerDay }),
  skills: orNull(Type.Array(Id, { minItems: 1, maxItems: maxPlanSkills, uniqueItems: true })),
  days: orNull(Days),
  confidence_level: orNull(Level),
  target_score: orNull(TargetScore),
});
const whatIfCheck = Compile(WhatIfRequest);

/**
 * JSON of the forecast under a plan.
 *
 * @throws ApiError INVALID_REQUEST, USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE
 */
export async function forecastWhatIf(
  forecaster: Forecaster,
  tenant: string,
  userId: string,
  body: unknown,
  stillWanted: StillWanted,
): Promise<string> {
  const request = checked(whatIfCheck, body, 'plan');
  const task = {
    tenant,
    userId,
    days: request.days ?? null,
    level: request.confidence_level ?? forecastDefaults.level,
    answersPerDay: request.answers_per_day,
    skillIds: request.skills ?? null,
    targetScore: request.target_score ?? null,
  };
  return (await forecaster.whatIf(task, stillWanted)) ?? notFound();
}
