import { ApiError } from '../errors.js';
import type { ClassForecast } from '../services/read/forecast-scores.js';
import { defectsAmong, errorObject, successEnvelope } from './envelope.js';
import type { Reply } from './routes.js';

/** The answer to a request for a class: 200, each learner with a result or an error of its own. */
export function classReply(forecasts: readonly ClassForecast[]): Reply {
  const defects = defectsAmong(forecasts.map(({ result }) => result));
  const found = forecasts.filter(({ result }) => !(result instanceof ApiError)).length;
  const failed = defects.length;
  const missing = forecasts.length - found - failed;
  const entries = forecasts.map(renderForecast).join(',');
  const data = `{"found":${found},"missing":${missing},"failed":${failed},"results":[${entries}]}`;
  return { status: 200, body: successEnvelope(data), defects };
}

function renderForecast({ userId, result }: ClassForecast, index: number): string {
  const place = `"index":${index},"user_id":${JSON.stringify(userId)}`;
  return result instanceof ApiError
    ? `{${place},"status":${result.status},"error":${JSON.stringify(errorObject(result))}}`
    : `{${place},"status":200,"data":${result}}`;
}
