import {
  App,
  type HttpRequest,
  type HttpResponse,
  LIBUS_LISTEN_EXCLUSIVE_PORT,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js';
import { ApiError } from '../errors.js';
import type { Logger } from '../telemetry.js';
import type { Connections } from './connections.js';
import { errorReply } from './envelope.js';
import { ClientGone, type Exchange, openExchange } from './exchange.js';
import { createFailureLog, type FailureLog } from './failure-log.js';
import type { Gate } from './gate.js';
import { noteAnswer, type RequestFigures, type RouteFigures } from './request-figures.js';
import type { Match, Place, Reply, Route } from './routes.js';
import type { UnreadAnswers } from './unread-answers.js';
import './uws-types.js';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Several API processes of one host share a port; everybody else has it alone. */
  readonly sharePort: boolean;
  readonly routes: readonly Route[];
  readonly gate: Gate;
  readonly figures: RequestFigures;
  readonly unread: UnreadAnswers;
  /** Where absent, as many are taken as come. */
  readonly connections?: Connections;
  readonly logger: Logger;
}

export interface Server {
  readonly port: number;
  /** Stops accepting, answers what is in flight for at most `timeoutMs`, then closes every connection. */
  close(timeoutMs: number): Promise<void>;
}

/** @throws Error when the port cannot be listened on */
export async function startServer(options: ServerOptions): Promise<Server> {
  const app = App();
  options.connections?.watch(app);
  const failures = createFailureLog(options.logger, options.figures, () => performance.now());
  const traffic: Traffic = { open: 0, closing: false, onIdle: () => undefined };
  const serve: Serve = (place, method, path) => {
    const counts = options.figures.of(method, path);
    const parameterCount = place.route?.path.match(/:\w+/g)?.length ?? 0;
    return (res, req) => {
      const exchange = openExchange(res, req, bodyLimitOf(place.route, req), options.unread);
      const { route, allow, keyless } = place;
      const parameters = parametersOf(req, parameterCount);
      const match = { route, allow, keyless, parameters };
      void answer(options.gate, failures, traffic, exchange, match, counts);
    };
  };
  register(app, options.routes, serve);
  const socket = await listen(app, options);
  return {
    port: us_socket_local_port(socket),
    close: async (timeoutMs) => {
      traffic.closing = true;
      us_listen_socket_close(socket);
      await idle(traffic, timeoutMs);
      app.close();
    },
  };
}

interface Traffic {
  open: number;
  closing: boolean;
  onIdle: () => void;
}

/** Method and path are what the answers are counted under. */
type Serve = (place: Place, method: string, path: string) => (res: HttpResponse, req: HttpRequest) => void;

function register(app: TemplatedApp, routes: readonly Route[], serve: Serve): void {
  for (const path of new Set(routes.map((route) => route.path))) {
    const here = routes.filter((route) => route.path === path);
    const allow = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
    const keyless = here.every(({ scope }) => scope === null);
    for (const route of here) registerRoute(app, route, serve({ route, allow, keyless }, route.method, path));
    app.any(path, serve({ route: null, allow, keyless }, 'other', path));
  }
  app.any('/*', serve({ route: null, allow: null, keyless: false }, 'any', 'unknown'));
}

function registerRoute(
  app: TemplatedApp,
  { method, path }: Route,
  handler: (res: HttpResponse, req: HttpRequest) => void,
): void {
  if (method === 'POST') app.post(path, handler);
  else if (method === 'PUT') app.put(path, handler);
  else if (method === 'DELETE') app.del(path, handler);
  else app.get(path, handler).head(path, handler);
}

/** A refused body is received as well, so that the client sees the answer: nothing of it is kept. */
function bodyLimitOf(route: Route | null, req: HttpRequest): number | null {
  if (route?.body) return route.body.limit;
  const sendsBody = req.getHeader('content-length') !== '' || req.getHeader('transfer-encoding') !== '';
  return sendsBody ? 0 : null;
}

const parametersOf = (req: HttpRequest, count: number): string[] =>
  Array.from({ length: count }, (_, i) => req.getParameter(i) ?? '');

async function answer(
  gate: Gate,
  failures: FailureLog,
  traffic: Traffic,
  exchange: Exchange,
  match: Match,
  counts: RouteFigures,
): Promise<void> {
  const since = performance.now();
  traffic.open += 1;
  const headers: Record<string, string> = {
    'X-Request-Id': exchange.requestId,
    'Content-Type': 'application/json',
  };
  let onOver: Reply['onOver'];
  try {
    const reply = await gate(exchange, match, headers).catch(failureReply);
    onOver = reply.onOver;
    if (reply.status >= 500 && reply.error) failures.log(exchange, match.route, reply.error);
    if (reply.defects) failures.logParts(exchange, match.route, reply.defects);
    Object.assign(headers, reply.headers);
    const refused = exchange.framingProblem !== null || reply.error?.code === 'PAYLOAD_TOO_LARGE';
    // Who stays is closed when all are answered: at once would cut an answer that is still being read.
    if (traffic.closing) headers.Connection = 'close';
    if (reply.pieces) await exchange.stream({ status: reply.status, headers }, reply.pieces);
    else await exchange.answer({ status: reply.status, headers, body: reply.body }, refused);
    noteAnswer(counts, reply.status, performance.now() - since);
  } catch (error) {
    if (!(error instanceof ClientGone)) failures.log(exchange, match.route, error);
  } finally {
    onOver?.();
    traffic.open -= 1;
    if (traffic.open === 0) traffic.onIdle();
  }
}

/** Whatever goes wrong becomes an answer; what is not meant for callers becomes INTERNAL, and a log line. */
function failureReply(error: unknown): Reply {
  if (error instanceof ClientGone) throw error;
  return errorReply(error instanceof ApiError ? error : internal(error));
}

const internal = (cause: unknown): ApiError =>
  new ApiError('INTERNAL', 'Something went wrong on our side; try again with the same event_id', { cause });

/** uWebSockets.js shares a port between processes unless told otherwise. */
const shared = 0;

function listen(app: TemplatedApp, { host, port, sharePort }: ServerOptions): Promise<us_listen_socket> {
  const mode = sharePort ? shared : LIBUS_LISTEN_EXCLUSIVE_PORT;
  return new Promise((resolve, reject) => {
    app.listen(host, port, mode, (socket) => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${host}:${port}: the port is taken or not allowed`));
    });
  });
}

function idle(traffic: Traffic, timeoutMs: number): Promise<void> {
  if (traffic.open === 0) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeoutMs);
    traffic.onIdle = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}
