import { ApiError } from '../errors.js';
import type { ClassForecast } from '../services/forecast-scores.js';
import { errorObject, successEnvelope } from './envelope.js';
import type { Reply } from './routes.js';

/** The answer to a request for a class: 200, each learner with a result or an error of its own. */
export function classReply(forecasts: readonly ClassForecast[]): Reply {
  const found = forecasts.filter(({ result }) => !(result instanceof ApiError)).length;
  const entries = forecasts.map(renderForecast).join(',');
  const data = `{"found":${found},"missing":${forecasts.length - found},"results":[${entries}]}`;
  return { status: 200, body: successEnvelope(data) };
}

function renderForecast({ userId, result }: ClassForecast, index: number): string {
  const place = `"index":${index},"user_id":${JSON.stringify(userId)}`;
  return result instanceof ApiError
    ? `{${place},"status":${result.status},"error":${JSON.stringify(errorObject(result))}}`
    : `{${place},"status":200,"data":${result}}`;
}
