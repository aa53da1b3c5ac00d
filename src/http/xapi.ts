/** What xAPI does its own way on HTTP (Communication, 3 and 4): credentials, the version, errors without the envelope. */
import { invalid } from '../errors.js';
import { errorObject } from './replies.js';
import type { Protocol } from './route.js';

const version = 'X-Experience-API-Version';

/** Any user name with an API key as the password. */
function keyInBasic(authorization: string | null): string | null {
  const [, encoded] = /^basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString();
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : null;
}

export const xapi: Protocol = {
  headers: { [version]: '1.0.3' },
  keyOf: (header) => header('x-api-key') ?? keyInBasic(header('authorization')),
  check: (header) => {
    if (!/^1\.0(\.\d+)?$/.test(header(version.toLowerCase()) ?? ''))
      throw invalid(`The header ${version} must be 1.0 or 1.0.x, such as 1.0.3`);
  },
  errorReply: (error) => ({
    status: error.code === 'IDEMPOTENCY_KEY_REUSED' ? 409 : error.status,
    body: JSON.stringify(errorObject(error)),
    headers: {
      ...error.headers,
      ...(error.status === 401 && { 'WWW-Authenticate': 'Basic realm="xAPI", ApiKey' }),
    },
    error,
  }),
};
