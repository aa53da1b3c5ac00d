import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Compute } from '../../compute/compute.js';
import type { ForecastResult } from '../../compute/forecast-batcher.js';
import type { Call } from '../../contracts/call.js';
import { TargetScore } from '../../contracts/goals.js';
import { Id } from '../../contracts/ids.js';
import { parseJson, parseLargeJson } from '../../contracts/json.js';
import { optionalNullable, validate } from '../../contracts/validate.js';
import { locales } from '../../domain/advice/advice-texts.js';
import { goalConstants, scoreConstants } from '../../domain/base/score-constants.js';
import { defaultForecastDays, maxAnswersPerDay } from '../../domain/score/learner-forecast.js';
import { ApiError } from '../../errors.js';
import { splitIntoParts } from '../../lists.js';
import { userNotFound } from './read-mastery.js';

export const standardForecast = {
  days: defaultForecastDays,
  level: scoreConstants.defaultLevel,
  locale: locales[0],
} as const;

const Days = Type.Integer({ minimum: 1, maximum: goalConstants.horizonDays, default: standardForecast.days });
const Level = Type.Number({ minimum: 0.5, maximum: 0.99, default: standardForecast.level });
const LocaleName = Type.Enum([...locales], { default: standardForecast.locale });

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
  return found(result ?? null);
}

function found(result: string | null): string {
  if (result === null) throw userNotFound();
  return result;
}

export const maxLearners = 500;
export const maxClassValues = 5000;
/** Few, so that other requests run in between and work stops soon after a disconnect. */
const learnersPerOrder = 8;

export const ClassRequest = Type.Object(
  {
    user_ids: Type.Array(Id, { minItems: 1, maxItems: maxLearners }),
    days: optionalNullable(Days),
    confidence_level: optionalNullable(Level),
    locale: optionalNullable(LocaleName),
  },
  { examples: [{ user_ids: ['ada', 'ben'], days: 60 }] },
);
const classCheck = Compile(ClassRequest);

export interface ClassResult {
  readonly userId: string;
  readonly result: string | ApiError;
}

function resultOf(forecast: ForecastResult | undefined): ClassResult['result'] {
  if (!(forecast instanceof Error)) return forecast ?? userNotFound();
  return new ApiError('INTERNAL', 'The forecast of this learner failed on our side', { cause: forecast });
}

export async function forecastClass(
  forecaster: Forecaster,
  { tenant, body, throwIfDisconnected }: Call,
): Promise<ClassResult[]> {
  const request = validate(classCheck, await parseLargeJson(body, maxClassValues), 'request');
  const options = {
    days: request.days ?? standardForecast.days,
    level: request.confidence_level ?? standardForecast.level,
    locale: request.locale ?? standardForecast.locale,
  };
  const forecasts: ClassResult[] = [];
  for (const userIds of splitIntoParts(request.user_ids, learnersPerOrder)) {
    const results = await forecaster.forecast({ tenant, userIds, ...options }, throwIfDisconnected);
    forecasts.push(...userIds.map((userId, i) => ({ userId, result: resultOf(results[i]) })));
  }
  return forecasts;
}

const maxPlanSkills = 100;

export const PlanRequest = Type.Object(
  {
    answers_per_day: Type.Number({ minimum: 0, maximum: maxAnswersPerDay }),
    skills: optionalNullable(Type.Array(Id, { minItems: 1, maxItems: maxPlanSkills, uniqueItems: true })),
    days: optionalNullable(Days),
    confidence_level: optionalNullable(Level),
    target_score: optionalNullable(TargetScore),
  },
  { examples: [{ answers_per_day: 20, days: 60, target_score: 1300 }] },
);
const whatIfCheck = Compile(PlanRequest);

export async function forecastWhatIf(
  forecaster: Forecaster,
  { tenant, body, throwIfDisconnected }: Call,
  userId: string,
): Promise<string> {
  const request = validate(whatIfCheck, parseJson(body), 'plan');
  const task = {
    tenant,
    userId,
    days: request.days ?? null,
    level: request.confidence_level ?? standardForecast.level,
    answersPerDay: request.answers_per_day,
    skillIds: request.skills ?? null,
    targetScore: request.target_score ?? null,
  };
  return found(await forecaster.whatIf(task, throwIfDisconnected));
}
