/** Query values of the routes, checked against the schemas of the services. */
import { Compile, type Validator } from 'typebox/compile';
import { problemsOf } from '../contracts/problems.js';
import { invalid } from '../errors.js';
import { ExplainQuery } from '../services/explain-mastery.js';
import { PredictionQuery } from '../services/forecast-scores.js';
import { SkillsQuery } from '../services/read-skills.js';
import type { Call } from './routes.js';

type Values = Call['query'];

const predictionCheck = Compile(PredictionQuery);
const explainCheck = Compile(ExplainQuery);
const skillsCheck = Compile(SkillsQuery);

/** @throws ApiError INVALID_REQUEST */
export const predictionQuery = ({ days, confidence_level }: Values): PredictionQuery =>
  checked(predictionCheck, { days: numberOf(days, 30), confidence_level: numberOf(confidence_level, 0.8) });

/** @throws ApiError INVALID_REQUEST */
export const explainQuery = ({ explain = 'false', steps }: Values): ExplainQuery =>
  checked(explainCheck, { explain, steps: numberOf(steps, 10) });

/** @throws ApiError INVALID_REQUEST */
export const skillsQuery = ({ limit, cursor }: Values): SkillsQuery =>
  checked(skillsCheck, { limit: numberOf(limit, 100), ...(cursor === undefined ? {} : { cursor }) });

interface Check<Value> {
  Check(value: unknown): value is Value;
  Errors: Validator['Errors'];
}

function checked<Value>(check: Check<Value>, values: unknown): Value {
  if (check.Check(values)) return values;
  const problems = problemsOf(check.Errors(values));
  throw invalid(
    `Invalid query: ${problems.map(({ path, message }) => `${path} ${message}`).join('; ')}`,
    problems,
  );
}

/** Numbers in queries are plain decimals. */
const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

function numberOf(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  return plainDecimal.test(text) ? Number(text) : Number.NaN;
}
