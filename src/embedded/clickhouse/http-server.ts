import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { BridgeError, failureOf } from './errors.js';
import { openAnswer, readBody, sendFailure, sendText } from './exchange.js';
import type { Lanes } from './lanes.js';
import { checkOverruns, type Overrun } from './overruns.js';
import { jobOf } from './request.js';

/** The engine inside has no users: accounts are the bridge's. */
export interface Account {
  readonly name: string;
  readonly password: string;
  readonly readonly: boolean;
}

interface BridgeOptions {
  readonly lanes: Lanes;
  readonly accounts: readonly Account[];
  readonly database: string;
  readonly overruns: readonly Overrun[];
}

/** Largest body of the service, after decompression; and of an analyst, who only sends questions. */
const maxInsertBytes = 256 * 1024 * 1024;
const maxQuestionBytes = 1024 * 1024;

/** The ClickHouse HTTP interface over the lanes; not yet listening. */
export const createBridge = (options: BridgeOptions): Server =>
  createServer(
    { keepAliveTimeout: 10_000, requestTimeout: 300_000, maxHeaderSize: 1024 * 1024 },
    (request, response) => {
      handle(options, request, response).catch((error: unknown) => {
        if (response.destroyed || response.headersSent) response.destroy();
        else refuse(request, response, error);
      });
    },
  );

/** What is left of an unread body would be taken for the next request: the connection ends. */
function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (!request.complete) response.setHeader('Connection', 'close');
  sendFailure(response, failureOf(error));
  request.resume();
}

async function handle(
  options: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '' } = request;
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (isProbe(method, url)) return sendText(response, 200, 'Ok.\n');
  const database = pathDatabase(url.pathname);
  const isQuery = method === 'POST' || url.searchParams.has('query');
  if (database === undefined || !isQuery)
    return sendText(response, 404, `There is no handle ${url.pathname.slice(0, 200)}\n`);
  if (!['GET', 'HEAD', 'POST'].includes(method))
    throw new BridgeError(48, 'NOT_IMPLEMENTED', `Method ${method} is not supported`);
  return runQuery(options, request, response, url.searchParams, database);
}

function isProbe(method: string, { pathname, searchParams }: URL): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  return ['/ping', '/replicas_status'].includes(pathname) || (pathname === '/' && !searchParams.has('query'));
}

/** `/name` is a database; null for `/`; undefined when no handler has such a path. */
function pathDatabase(pathname: string): string | null | undefined {
  return pathname === '/' ? null : /^\/([A-Za-z_]\w*)\/?$/.exec(pathname)?.[1];
}

async function runQuery(
  { lanes, accounts, database, overruns }: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  fromPath: string | null,
): Promise<void> {
  const id = randomUUID();
  response.setHeader('X-ClickHouse-Server-Display-Name', 'skilltrace-embedded');
  response.setHeader('X-ClickHouse-Query-Id', query.get('query_id') ?? id);
  response.setHeader('X-ClickHouse-Timezone', 'UTC');
  const { headers, method = 'GET' } = request;
  const { readonly: analyst } = authenticate(accounts, headers, query);
  const body = await readBody(request, analyst ? maxQuestionBytes : maxInsertBytes);
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const places = { pathDatabase: fromPath, defaultDatabase: database };
  const { job, lane, format } = jobOf({ query, headers, method, ...places, analyst, id }, body);
  if (analyst) checkOverruns(overruns, job.statement, Date.now());
  const answer = openAnswer(request, response, query, format);
  try {
    answer.finish(await lanes.run(lane, job, answer, gone.signal));
  } catch (error) {
    answer.fail(failureOf(error));
  }
}

/** The account of a request, by headers, basic auth or query; wrong ones raise code 516. */
export function authenticate(
  accounts: readonly Account[],
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
): Account {
  const [user, password] = credentialsOf(headers, query);
  const account = accounts.find(({ name }) => name === user);
  if (sameSecret(password, account?.password ?? '') && account !== undefined) return account;
  const reason = 'Authentication failed: password is incorrect, or there is no user with such name.';
  throw new BridgeError(516, 'AUTHENTICATION_FAILED', `${user.slice(0, 100)}: ${reason}`);
}

function credentialsOf(
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
): [user: string, password: string] {
  const { 'x-clickhouse-user': user, 'x-clickhouse-key': key } = headers;
  if (user !== undefined || key !== undefined) return [String(user ?? 'default'), String(key ?? '')];
  const basic = /^Basic\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic === undefined) return [query.get('user') ?? 'default', query.get('password') ?? ''];
  const [name = '', ...password] = Buffer.from(basic, 'base64').toString('utf8').split(':');
  return [name, password.join(':')];
}

function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
