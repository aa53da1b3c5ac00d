/** xAPI (Communication, 3 and 4). */
import Type from 'typebox';
import type { Call } from '../contracts/access/call.js';
import { checkUniqueNames, parseLargeJson } from '../contracts/schema/json.js';
import { MappingRequest } from '../contracts/xapi/mapping.js';
import { StatementBody, Uuid } from '../contracts/xapi/statement.js';
import { type ErrorCode, errorTable, invalid } from '../errors.js';
import { type MappingPorts, putMapping, readMapping } from '../services/xapi/manage-mapping.js';
import { putStatement, recordStatements, type StatementPorts } from '../services/xapi/record-statements.js';
import { runInSlices } from '../slices.js';
import { handleTagged, toErrorObject } from './replies.js';
import { type Protocol, type Reply, type Route, route } from './route.js';
import {
  allowAdmin,
  allowWrite,
  createBodyRules,
  jsonMediaType,
  largeBody,
  largeBytes,
} from './route-rules.js';

const versionHeader = 'X-Experience-API-Version';

/** The password is the API key; the user name is ignored. */
function parseBasicKey(authorization: string | null): string | null {
  const [, encoded] = /^basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString();
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : null;
}

const getStatus = (code: ErrorCode): number =>
  code === 'IDEMPOTENCY_KEY_REUSED' ? 409 : errorTable[code].status;

const protocol: Protocol = {
  headers: { [versionHeader]: '1.0.3' },
  security: ['ApiKey', 'Basic'],
  readKey: (head) => head.header('x-api-key') ?? parseBasicKey(head.header('authorization')),
  checkHead: (head) => {
    if (!/^1\.0(\.\d+)?$/.test(head.header(versionHeader.toLowerCase()) ?? ''))
      throw invalid(`The header ${versionHeader} must be 1.0 or 1.0.x, for example 1.0.3.`);
  },
  getStatus,
  createErrorReply: (error) => ({
    status: getStatus(error.code),
    body: JSON.stringify(toErrorObject(error)),
    headers: {
      ...error.headers,
      ...(error.status === 401 && { 'WWW-Authenticate': 'Basic realm="xAPI", ApiKey' }),
    },
    error,
  }),
};

const statements = {
  ...allowWrite(createBodyRules(largeBytes, { [jsonMediaType]: StatementBody }, 'gzip')),
  protocol,
};
/** 50 values for each of 1,000 statements. */
const maxStatementValues = 50_000;
const StatementQuery = Type.Object({ statementId: Uuid });
const mapping = allowAdmin(largeBody(MappingRequest), 'xapi_mapping.saved');

/** Repeated names are invalid (Data, 2.4). @throws ApiError INVALID_REQUEST */
async function parseStatements({ body }: Call): Promise<unknown> {
  const sent = await parseLargeJson(body, maxStatementValues);
  await runInSlices(checkUniqueNames(body));
  return sent;
}

const createJsonReply = (data: object): Reply => ({ status: 200, body: JSON.stringify(data) });

export const createXapiRoutes = (ports: StatementPorts & MappingPorts): readonly Route[] => [
  route('GET /api/v1/xapi-mapping', allowAdmin(), handleTagged(readMapping, ports)),
  route('PUT /api/v1/xapi-mapping', mapping, handleTagged(putMapping, ports, 'Mapping saved')),
  route('POST /xapi/statements', statements, async (call) => {
    return createJsonReply(await recordStatements(ports, call, await parseStatements(call)));
  }),
  route('PUT /xapi/statements', { ...statements, query: StatementQuery }, async (call) => {
    await putStatement(ports, call, call.query.statementId, await parseStatements(call));
    return { status: 204, body: '' };
  }),
  route('GET /xapi/about', { protocol }, () => createJsonReply({ version: ['1.0.3'] })),
];
