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
import { within } from '../lifecycle.js';
import { groupedBy } from '../lists.js';
import type { Figures } from '../services/read/figures.js';
import type { Spans } from '../spans.js';
import type { Logger } from '../telemetry.js';
import { Answering, type Traffic } from './answering.js';
import { Exchange } from './exchange.js';
import type { Gate } from './gate.js';
import { createRequestLog } from './request-log.js';
import { createUnreadAnswers } from './response-stream.js';
import type { Match, Route } from './route.js';

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
  readonly figures: Figures;
  readonly logger: Logger;
  readonly spans?: Spans | null;
  readonly maxConnections?: number;
  readonly maxUnread?: number;
}

export type Server = Awaited<ReturnType<typeof startServer>>;

/** @throws Error if the port is unavailable */
export async function startServer(options: ServerOptions) {
  const { routes, gate, figures, logger, spans = null } = options;
  const app = App();
  boundConnections(app, options);
  const log = createRequestLog(figures, logger);
  const unread = createUnreadAnswers(figures, options.maxUnread);
  const traffic: Traffic = { open: 0, closing: false, onIdle: () => undefined };
  register(app, routes, (match, method, path) => {
    const serving = { match, gate, log, traffic, spans, counts: log.countsOf(method, path) };
    return (res, req) => new Answering(serving, new Exchange(res, req, match, unread)).begin();
  });
  const socket = await listen(app, options);
  return {
    port: us_socket_local_port(socket),
    /** Waits up to `timeoutMs` for requests in flight, then closes all connections. */
    close: async (timeoutMs: number): Promise<void> => {
      traffic.closing = true;
      us_listen_socket_close(socket);
      const idle = new Promise<void>((resolve) => {
        traffic.onIdle = resolve;
      });
      if (traffic.open > 0) await within(idle, timeoutMs);
      app.close();
    },
  };
}

const tellEveryMs = 5000;

/** Without file descriptors, uWebSockets.js cannot even reject connections. */
function boundConnections(
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
      nextAt = performance.now() + tellEveryMs;
      logger.warn(
        { open: open - 1, refused: refused - logged },
        'connections are refused, too many are open: raise ulimit -n, or start more API processes',
      );
      logged = refused;
    }
    // This calls the filter again, with -1.
    res.close();
  };
  app.filter(count);
}

/** Hides paths and methods from requests without a key. */
const isBelowApi = (path: string): boolean => path.startsWith('/api/v1/');

type Handler = (res: HttpResponse, req: HttpRequest) => void;

const calls = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const;

function register(
  app: TemplatedApp,
  routes: readonly Route[],
  handlerOf: (match: Match, method: string, path: string) => Handler,
): void {
  for (const [path, here] of groupedBy(routes, (route) => route.path)) {
    const allow = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
    const keyless = here.every(({ scope }) => scope === null);
    const parameters = path.match(/:\w+/g)?.length ?? 0;
    const protocol = here[0]?.protocol;
    for (const route of here) {
      const handler = handlerOf({ route, allow, keyless, parameters, protocol }, route.method, path);
      app[calls[route.method]](path, handler);
      if (route.method === 'GET') app.head(path, handler);
    }
    const other = { route: null, allow, keyless: keyless || !isBelowApi(path), parameters: 0, protocol };
    app.any(path, handlerOf(other, 'other', path));
  }
  for (const [path, keyless] of [
    ['/api/v1', false],
    ['/api/v1/*', false],
    ['/*', true],
  ] as const)
    app.any(path, handlerOf({ route: null, allow: null, keyless, parameters: 0 }, 'any', 'unknown'));
}

/** uWebSockets.js shares ports by default. */
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
