import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Compute } from '../../compute/compute.js';
import type { ForecastResult } from '../../compute/forecast-batcher.js';
import type { Call } from '../../contracts/access/call.js';
import type { ForecastOrder } from '../../contracts/forecasts/forecast-tasks.js';
import { TargetScore } from '../../contracts/learners/goals.js';
import { StoredId } from '../../contracts/schema/ids.js';
import { parseJson, parseLargeJson } from '../../contracts/schema/json.js';
import { optionalNullable, validate } from '../../contracts/schema/validate.js';
import { locales } from '../../domain/advice/advice-texts.js';
import { goalConstants, scoreConstants } from '../../domain/base/score-constants.js';
import { defaultForecastDays, maxAnswersPerDay } from '../../domain/score/learner-forecast.js';
import { ApiError } from '../../errors.js';
import { splitIntoParts } from '../../lists.js';
import { userNotFound } from '../learners/read-mastery.js';

export const defaultForecast = {
  days: defaultForecastDays,
  level: scoreConstants.defaultLevel,
  locale: locales[0],
} as const;

const Days = Type.Integer({ minimum: 1, maximum: goalConstants.horizonDays, default: defaultForecast.days });
const Level = Type.Number({ minimum: 0.5, maximum: 0.99, default: defaultForecast.level });
const LocaleName = Type.Enum([...locales], { default: defaultForecast.locale });

export const PredictionQuery = Type.Object({ days: Days, confidence_level: Level, locale: LocaleName });

type Forecaster = Pick<Compute, 'forecast' | 'whatIf'>;

export async function forecastScores(
  forecaster: Forecaster,
  { tenant, query, throwIfDisconnected }: Call<Static<typeof PredictionQuery>>,
  userId: string,
): Promise<string> {
  const { days, confidence_level: level, locale } = query;
  const order = { tenant, userIds: [userId], days, level, locale };
  const [result] = await forecaster.forecast(order, throwIfDisconnected);
  if (result instanceof Error) throw result;
  return requireForecast(result ?? null);
}

function requireForecast(result: string | null): string {
  if (result === null) throw userNotFound();
  return result;
}

export const maxClassLearners = 500;
export const maxClassValues = 5000;
/** Few, so that other requests run in between and work stops soon after a disconnect. */
const learnersPerOrder = 8;
/** The worker reads one order while it computes the other. */
const parallelOrders = 2;

export const ClassForecastRequest = Type.Object(
  {
    user_ids: Type.Array(StoredId, { minItems: 1, maxItems: maxClassLearners }),
    days: optionalNullable(Days),
    confidence_level: optionalNullable(Level),
    locale: optionalNullable(LocaleName),
  },
  { examples: [{ user_ids: ['ada', 'ben'], days: 60 }] },
);
const classValidator = Compile(ClassForecastRequest);

export interface ClassResult {
  readonly userId: string;
  readonly result: string | ApiError;
}

function toClassResult(forecast: ForecastResult | undefined): ClassResult['result'] {
  if (!(forecast instanceof Error)) return forecast ?? userNotFound();
  return new ApiError('INTERNAL', 'Internal error in the forecast of this learner; see the service log.', {
    cause: forecast,
  });
}

/** Results in the order of `userIds`. */
export async function forecastInParts(
  forecaster: Pick<Compute, 'forecast'>,
  { userIds, ...order }: ForecastOrder,
  throwIfDisconnected: Call['throwIfDisconnected'],
): Promise<ForecastResult[]> {
  const results: ForecastResult[] = [];
  const parts = splitIntoParts(userIds, learnersPerOrder).map((part) => ({ ...order, userIds: part }));
  for (const some of splitIntoParts(parts, parallelOrders)) {
    const found = await Promise.all(some.map((one) => forecaster.forecast(one, throwIfDisconnected)));
    results.push(...found.flat());
  }
  return results;
}

export async function forecastClass(
  forecaster: Forecaster,
  { tenant, body, throwIfDisconnected }: Call,
): Promise<ClassResult[]> {
  const request = validate(classValidator, await parseLargeJson(body, maxClassValues), 'request');
  const order = {
    ...{ tenant, userIds: request.user_ids },
    days: request.days ?? defaultForecast.days,
    level: request.confidence_level ?? defaultForecast.level,
    locale: request.locale ?? defaultForecast.locale,
  };
  const results = await forecastInParts(forecaster, order, throwIfDisconnected);
  return request.user_ids.map((userId, i) => ({ userId, result: toClassResult(results[i]) }));
}

const maxPlanSkills = 100;

export const WhatIfRequest = Type.Object(
  {
    answers_per_day: Type.Number({ minimum: 0, maximum: maxAnswersPerDay }),
    skills: optionalNullable(
      Type.Array(StoredId, { minItems: 1, maxItems: maxPlanSkills, uniqueItems: true }),
    ),
    days: optionalNullable(Days),
    confidence_level: optionalNullable(Level),
    target_score: optionalNullable(TargetScore),
  },
  { examples: [{ answers_per_day: 20, days: 60, target_score: 1300 }] },
);
const whatIfValidator = Compile(WhatIfRequest);

export async function forecastWhatIf(
  forecaster: Forecaster,
  { tenant, body, throwIfDisconnected }: Call,
  userId: string,
): Promise<string> {
  const request = validate(whatIfValidator, parseJson(body), 'plan');
  const task = {
    tenant,
    userId,
    days: request.days ?? null,
    level: request.confidence_level ?? defaultForecast.level,
    answersPerDay: request.answers_per_day,
    skillIds: request.skills ?? null,
    targetScore: request.target_score ?? null,
  };
  return requireForecast(await forecaster.whatIf(task, throwIfDisconnected));
}
