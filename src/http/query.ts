/** Query values of the routes, checked against the schemas of the services. */
import { Compile } from 'typebox/compile';
import { checked } from '../contracts/checked.js';
import { ExplainQuery } from '../services/read/explain-mastery.js';
import { forecastDefaults, PredictionQuery } from '../services/read/forecast-scores.js';
import { PageQuery } from '../services/read/pages.js';
import { VelocityQuery } from '../services/read/velocity.js';
import type { Call } from './routes.js';

type Values = Call['query'];

const predictionCheck = Compile(PredictionQuery);
const explainCheck = Compile(ExplainQuery);
const pageCheck = Compile(PageQuery);
const velocityCheck = Compile(VelocityQuery);

/** @throws ApiError INVALID_REQUEST */
export const predictionQuery = ({
  days,
  confidence_level,
  locale = forecastDefaults.locale,
}: Values): PredictionQuery =>
  checked(
    predictionCheck,
    {
      days: numberOf(days, forecastDefaults.days),
      confidence_level: numberOf(confidence_level, forecastDefaults.level),
      locale,
    },
    'query',
  );

/** @throws ApiError INVALID_REQUEST */
export const explainQuery = ({ explain = 'false', steps }: Values): ExplainQuery =>
  checked(explainCheck, { explain, steps: numberOf(steps, 10) }, 'query');

/** @throws ApiError INVALID_REQUEST */
export const pageQuery = ({ limit, cursor }: Values): PageQuery =>
  checked(
    pageCheck,
    {
      ...(limit === undefined ? {} : { limit: numberOf(limit, 0) }),
      ...(cursor === undefined ? {} : { cursor }),
    },
    'query',
  );

/** @throws ApiError INVALID_REQUEST */
export const velocityQuery = ({ skill_id, days }: Values): VelocityQuery =>
  checked(
    velocityCheck,
    { days: numberOf(days, 28), ...(skill_id === undefined ? {} : { skill_id }) },
    'query',
  );

/** Numbers in queries are plain decimals. */
const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

function numberOf(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  return plainDecimal.test(text) ? Number(text) : Number.NaN;
}
