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
import type { Logger } from '../telemetry.js';
import { Answering, type Traffic } from './answering.js';
import type { Connections } from './connections.js';
import { Exchange } from './exchange.js';
import { createFailureLog } from './failure-log.js';
import { type Gate, isApi } from './gate.js';
import type { RequestFigures } from './request-figures.js';
import type { Match, Route } from './route.js';
import type { UnreadAnswers } from './unread-answers.js';

// What the types of the uWebSockets.js repack leave out and its binaries have.
declare module 'uWebSockets.js' {
  export const LIBUS_LISTEN_EXCLUSIVE_PORT: number;

  interface TemplatedApp {
    listen(
      host: string,
      port: number,
      options: number,
      callback: (socket: us_listen_socket | false) => void,
    ): TemplatedApp;
  }
}

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
  const serve: Serve = (found, method, path) => {
    const counts = options.figures.of(method, path ?? 'unknown');
    const { route, allow } = found;
    const parameterCount = route?.path.match(/:\w+/g)?.length ?? 0;
    const serving = { gate: options.gate, failures, traffic, counts };
    return (res, req) => {
      const keyless = found.keyless || !isApi(path ?? req.getUrl());
      const match = { route, allow, keyless, parameters: parametersOf(req, parameterCount) };
      const exchange = new Exchange(res, req, match, bodyLimitOf(route, req), options.unread);
      new Answering(serving, exchange, match).begin();
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

/** @param method what the answers are counted under @param path null: any */
type Serve = (
  found: Omit<Match, 'parameters'>,
  method: string,
  path: string | null,
) => (res: HttpResponse, req: HttpRequest) => void;

function register(app: TemplatedApp, routes: readonly Route[], serve: Serve): void {
  for (const path of new Set(routes.map((route) => route.path))) {
    const here = routes.filter((route) => route.path === path);
    const allow = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
    const keyless = here.every(({ scope }) => scope === null);
    for (const route of here) registerRoute(app, route, serve({ route, allow, keyless }, route.method, path));
    app.any(path, serve({ route: null, allow, keyless }, 'other', path));
  }
  app.any('/*', serve({ route: null, allow: null, keyless: false }, 'any', null));
}

function registerRoute(
  app: TemplatedApp,
  { method, path }: Route,
  handler: (res: HttpResponse, req: HttpRequest) => void,
): void {
  app[calls[method]](path, handler);
  if (method === 'GET') app.head(path, handler);
}

const calls = { GET: 'get', POST: 'post', PUT: 'put', DELETE: 'del' } as const;

/** A refused body is received as well, so that the client sees the answer: nothing of it is kept. */
function bodyLimitOf(route: Route | null, req: HttpRequest): number | null {
  if (route?.body) return route.body.limit;
  const sendsBody = req.getHeader('content-length') !== '' || req.getHeader('transfer-encoding') !== '';
  return sendsBody ? 0 : null;
}

function parametersOf(req: HttpRequest, count: number): string[] {
  const parameters: string[] = [];
  while (parameters.length < count) parameters.push(req.getParameter(parameters.length) ?? '');
  return parameters;
}

/** uWebSockets.js shares a port between processes by default. */
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
