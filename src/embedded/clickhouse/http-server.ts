import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Account, authenticate } from './accounts.js';
import { openAnswer, sendFailure, sendText } from './answer.js';
import { maxInsertBytes, maxQuestionBytes, readBody } from './body.js';
import { BridgeError, failureOf } from './errors.js';
import type { Lanes } from './lanes.js';
import { checkOverruns, type Overrun } from './overruns.js';
import { jobOf } from './request.js';

export interface BridgeOptions {
  readonly lanes: Lanes;
  readonly accounts: readonly Account[];
  readonly database: string;
  readonly overruns: readonly Overrun[];
}

const probePaths: ReadonlySet<string> = new Set(['/ping', '/replicas_status']);

function isProbe(request: IncomingMessage, url: URL): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  return probePaths.has(url.pathname) || (url.pathname === '/' && !url.searchParams.has('query'));
}

/** `/name` is a database; null for `/`; undefined when no handler has such a path. */
function pathDatabase(pathname: string): string | null | undefined {
  if (pathname === '/') return null;
  return /^\/([A-Za-z_]\w*)\/?$/.exec(pathname)?.[1];
}

function setCommonHeaders(response: ServerResponse, id: string): void {
  response.setHeader('X-ClickHouse-Server-Display-Name', 'skilltrace-embedded');
  response.setHeader('X-ClickHouse-Query-Id', id);
  response.setHeader('X-ClickHouse-Timezone', 'UTC');
}

async function runQuery(
  options: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  database: string | null,
): Promise<void> {
  const id = randomUUID();
  const query = url.searchParams;
  setCommonHeaders(response, query.get('query_id') ?? id);
  const account = authenticate(options.accounts, request.headers, query);
  const body = await readBody(request, account.readonly ? maxQuestionBytes : maxInsertBytes);
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const { headers, method = 'GET' } = request;
  const { job, lane, format } = jobOf(
    {
      query,
      headers,
      method,
      pathDatabase: database,
      defaultDatabase: options.database,
      analyst: account.readonly,
      id,
    },
    body,
  );
  if (account.readonly) checkOverruns(options.overruns, job.statement, Date.now());
  const answer = openAnswer(request, response, query, format);
  try {
    answer.finish(await options.lanes.run(lane, job, answer, gone.signal));
  } catch (error) {
    answer.fail(failureOf(error));
  }
}

async function handle(
  options: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (isProbe(request, url)) return sendText(response, 200, 'Ok.\n');
  const database = pathDatabase(url.pathname);
  const known = request.method === 'POST' || url.searchParams.has('query');
  if (database === undefined || !known) {
    return sendText(response, 404, `There is no handle ${url.pathname.slice(0, 200)}\n`);
  }
  if (!['GET', 'HEAD', 'POST'].includes(request.method ?? '')) {
    throw new BridgeError(48, 'NOT_IMPLEMENTED', `Method ${request.method} is not supported`);
  }
  return runQuery(options, request, response, url, database);
}

/** The ClickHouse HTTP interface over the lanes; not yet listening. */
export function createBridge(options: BridgeOptions): Server {
  const server = createServer(
    { keepAliveTimeout: 10_000, requestTimeout: 300_000, maxHeaderSize: 1024 * 1024 },
    (request, response) => {
      handle(options, request, response).catch((error: unknown) => {
        if (response.destroyed || response.headersSent) response.destroy();
        else refuse(request, response, error);
      });
    },
  );
  return server;
}

/** What is left of an unread body would be taken for the next request: the connection ends. */
function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (!request.complete) response.setHeader('Connection', 'close');
  sendFailure(response, failureOf(error));
  request.resume();
}
