/** xAPI (Communication, 3 and 4). */
import Type from 'typebox';
import { parseLarge } from '../contracts/json.js';
import { MappingRequest } from '../contracts/xapi/mapping.js';
import { StatementBody, Uuid } from '../contracts/xapi/statement.js';
import { type ErrorCode, errorTable, invalid } from '../errors.js';
import { type MappingPorts, putMapping, readMapping } from '../services/xapi/mappings.js';
import { putStatement, recordStatements, type StatementPorts } from '../services/xapi/record-statements.js';
import { errorObject, tagged } from './replies.js';
import { type Protocol, type Reply, type Route, route } from './route.js';
import { administers, bodyOf, json, largeBody, largeBytes, writes } from './rules.js';

const version = 'X-Experience-API-Version';

/** The password is the API key; the user name is ignored. */
function keyInBasic(authorization: string | null): string | null {
  const [, encoded] = /^basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString();
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : null;
}

const statusOf = (code: ErrorCode): number =>
  code === 'IDEMPOTENCY_KEY_REUSED' ? 409 : errorTable[code].status;

const protocol: Protocol = {
  headers: { [version]: '1.0.3' },
  security: ['ApiKey', 'Basic'],
  keyOf: (head) => head.header('x-api-key') ?? keyInBasic(head.header('authorization')),
  check: (head) => {
    if (!/^1\.0(\.\d+)?$/.test(head.header(version.toLowerCase()) ?? ''))
      throw invalid(`The header ${version} must be 1.0 or 1.0.x, such as 1.0.3`);
  },
  statusOf,
  errorReply: (error) => ({
    status: statusOf(error.code),
    body: JSON.stringify(errorObject(error)),
    headers: {
      ...error.headers,
      ...(error.status === 401 && { 'WWW-Authenticate': 'Basic realm="xAPI", ApiKey' }),
    },
    error,
  }),
};

const statements = { ...writes(bodyOf(largeBytes, { [json]: StatementBody }, 'gzip')), protocol };
/** 50 values for each of 1,000 statements. */
const maxStatementValues = 50_000;
const StatementQuery = Type.Object({ statementId: Uuid });
const mapping = administers(largeBody(MappingRequest));

const plainReply = (data: object): Reply => ({ status: 200, body: JSON.stringify(data) });

export const xapiRoutes = (ports: StatementPorts & MappingPorts): readonly Route[] => [
  route('GET /api/v1/xapi-mapping', administers(), tagged(readMapping, ports)),
  route('PUT /api/v1/xapi-mapping', mapping, tagged(putMapping, ports, 'Mapping set')),
  route('POST /xapi/statements', statements, async (call) => {
    const sent = await parseLarge(call.body, maxStatementValues);
    return plainReply(await recordStatements(ports, call, sent));
  }),
  route('PUT /xapi/statements', { ...statements, query: StatementQuery }, async (call) => {
    const sent = await parseLarge(call.body, maxStatementValues);
    await putStatement(ports, call, call.query.statementId, sent);
    return { status: 204, body: '' };
  }),
  route('GET /xapi/about', { protocol }, () => plainReply({ version: ['1.0.3'] })),
];
