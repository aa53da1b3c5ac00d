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
import { waitAtMost } from '../lifecycle.js';
import { groupBy } from '../lists.js';
import type { Logger } from '../logger.js';
import type { KeyTraffic } from '../services/operations/key-traffic.js';
import type { MetricRegistry } from '../services/operations/metric-registry.js';
import type { StartSpan } from '../spans.js';
import { Exchange } from './exchange.js';
import type { Gate } from './gate.js';
import { createUnreadResponses } from './open-response.js';
import { RequestHandler, type Traffic } from './request-handler.js';
import { createRequestLog } from './request-log.js';
import type { Route, RouteMatch } from './route.js';

// Missing in the types of uWebSockets.js.
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

interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly sharePort: boolean;
  readonly routes: readonly Route[];
  readonly gate: Gate;
  readonly figures: MetricRegistry;
  readonly keyTraffic: Pick<KeyTraffic, 'countResponse'>;
  readonly logger: Logger;
  readonly spans?: StartSpan | null;
  readonly maxConnections?: number;
  readonly maxUnreadBytes?: number;
}

export type Server = Awaited<ReturnType<typeof startServer>>;

/** @throws Error if the port is unavailable */
export async function startServer(options: ServerOptions) {
  const { routes, gate, figures, keyTraffic, logger, spans = null } = options;
  const app = App();
  limitConnections(app, options);
  const log = createRequestLog(figures, logger);
  const unread = createUnreadResponses(figures, options.maxUnreadBytes);
  const traffic: Traffic = { open: 0, closing: false, onIdle: () => undefined };
  registerRoutes(app, routes, (match, method, path) => {
    const routeFigures = log.getRouteFigures(method, path);
    const context = { match, gate, log, traffic, spans, keyTraffic, figures: routeFigures };
    return (res, req) => new RequestHandler(context, new Exchange(res, req, match, unread)).start();
  });
  const socket = await listen(app, options);
  const close = async (timeoutMs: number): Promise<void> => {
    traffic.closing = true;
    us_listen_socket_close(socket);
    const idle = new Promise<void>((resolve) => {
      traffic.onIdle = resolve;
    });
    if (traffic.open > 0) await waitAtMost(idle, timeoutMs);
    app.close();
  };
  let closing: Promise<void> | null = null;
  return {
    port: us_socket_local_port(socket),
    /**
     * Waits up to `timeoutMs` for requests in flight, then closes all connections. Later calls wait for the first: closing
     * the listen socket twice accesses freed memory.
     */
    close: (timeoutMs: number): Promise<void> => {
      closing ??= close(timeoutMs);
      return closing;
    },
  };
}

const warnIntervalMs = 5000;

/** Without file descriptors, uWebSockets.js cannot even reject connections. */
function limitConnections(
  app: TemplatedApp,
  { maxConnections = Infinity, figures, logger }: ServerOptions,
): void {
  let open = 0;
  let refused = 0;
  let logged = 0;
  let nextAt = 0;
  figures.add('connections_open', () => open);
  figures.add('connections_refused_total', () => refused);
  const count = (res: HttpResponse, change: number): void => {
    open += change;
    if (change < 0 || open <= maxConnections) return;
    refused += 1;
    if (performance.now() >= nextAt) {
      nextAt = performance.now() + warnIntervalMs;
      logger.warn(
        { open: open - 1, refused: refused - logged },
        'connections are rejected because too many are open; raise ulimit -n or start more API processes',
      );
      logged = refused;
    }
    // This calls the filter again, with -1.
    res.close();
  };
  app.filter(count);
}

/** Below it, a request without a key must not learn which paths and methods exist. */
const isBelowApi = (path: string): boolean => path.startsWith('/api/v1/');

type Handler = (res: HttpResponse, req: HttpRequest) => void;

const appMethods = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const;

function registerRoutes(
  app: TemplatedApp,
  routes: readonly Route[],
  createHandler: (match: RouteMatch, method: string, path: string) => Handler,
): void {
  for (const [path, here] of groupBy(routes, (route) => route.path)) {
    const allow = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
    const isKeyless = here.every(({ scope }) => scope === null);
    const parameters = path.match(/:\w+/g)?.length ?? 0;
    const protocol = here[0]?.protocol;
    for (const route of here) {
      const handler = createHandler({ route, allow, isKeyless, parameters, protocol }, route.method, path);
      app[appMethods[route.method]](path, handler);
      if (route.method === 'GET') app.head(path, handler);
    }
    const other = { route: null, allow, isKeyless: isKeyless || !isBelowApi(path), parameters: 0, protocol };
    app.any(path, createHandler(other, 'other', path));
    // A name in the path of a page file may be unknown.
    if (!path.endsWith('/:file'))
      app.any(`${path}/`, createHandler({ ...other, allow: null, hasExtraSlash: true }, 'any', 'unknown'));
  }
  for (const [path, isKeyless] of [
    ['/api/v1', false],
    ['/api/v1/*', false],
    ['/*', true],
  ] as const)
    app.any(path, createHandler({ route: null, allow: null, isKeyless, parameters: 0 }, 'any', 'unknown'));
}

/** uWebSockets.js shares ports by default. */
const shared = 0;

function listen(app: TemplatedApp, { host, port, sharePort }: ServerOptions): Promise<us_listen_socket> {
  const mode = sharePort ? shared : LIBUS_LISTEN_EXCLUSIVE_PORT;
  return new Promise((resolve, reject) => {
    app.listen(host, port, mode, (socket) => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${host}:${port}: the port is in use or not permitted`));
    });
  });
}
