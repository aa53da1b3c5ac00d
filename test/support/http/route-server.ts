import type { TestContext } from 'node:test';
import { createGate } from '../../../src/http/gate.js';
import type { Reply, Route } from '../../../src/http/route.js';
import { type Server, startServer } from '../../../src/http/server.js';
import { createLogger } from '../../../src/logger.js';
import { createKeyTraffic } from '../../../src/services/operations/key-traffic.js';
import type { MetricRegistry } from '../../../src/services/operations/metric-registry.js';

/** Starts the HTTP server with GET routes that need no key. @param handlers by path */
export async function startRoutes(
  t: TestContext,
  handlers: Record<string, () => Reply>,
  figures: MetricRegistry = { add: () => undefined },
  maxUnreadBytes = 64 * 1024 * 1024,
): Promise<Server> {
  const routes = Object.entries(handlers).map(
    ([path, handle]): Route => ({ method: 'GET', path, scope: null, body: null, query: null, handle }),
  );
  const authenticator = { authenticate: () => Promise.reject(new Error('no route needs a key')) };
  const server = await startServer({
    ...{ host: '127.0.0.1', port: 0, sharePort: false, routes, figures, maxUnreadBytes },
    keyTraffic: createKeyTraffic(),
    gate: createGate(authenticator, { pass: () => ({}) }),
    logger: createLogger('silent', 'test'),
  });
  t.after(() => server.close(0));
  return server;
}
