/** The front end of one process: routes, checks and what they need of the engine. */
import { singleFlight } from '../concurrency.js';
import type { Config } from '../config.js';
import { ApiError } from '../errors.js';
import { createAuthenticator } from '../http/auth.js';
import { createGate, createQuotaGate } from '../http/gate.js';
import { routesOf } from '../http/routes.js';
import { startServer } from '../http/server.js';
import { StartError } from '../lifecycle.js';
import type { Figures } from '../services/read/figures.js';
import { createHealth } from '../services/read/health.js';
import type { AnswerTally } from '../services/record/record-attempts.js';
import { createKeyRing, createQuotaCounter } from '../store/access/api-keys.js';
import { sweepIds, takeSweepTurn } from '../store/learners/id-sweep.js';
import type { Engine } from './engine.js';
import { addAnswerFigures } from './metrics.js';
import { connectionBound } from './open-files.js';
import { routePortsOf } from './route-ports.js';

interface ApiOptions {
  readonly config: Pick<Config, 'host' | 'port'>;
  /** Several processes listen on the port. */
  readonly sharePort: boolean;
  /** Only the probes and health, for a process that takes no answers. */
  readonly probesOnly: boolean;
  readonly stalled: () => string | null;
  /** Where this process registers its figures, and the text of these and the rest. */
  readonly figures: Figures;
  readonly metrics: () => Promise<string>;
}

const idSweepMs = 60_000;
/** Of the 10 s that a stop may take, what requests in flight get. */
const inFlightMs = 4000;

/** @returns the port that is listened on. @throws StartError when it is taken */
export async function startApi(engine: Engine, options: ApiOptions): Promise<number> {
  const { redis, logger, closers } = engine;
  const { config, sharePort, probesOnly, stalled, figures, metrics } = options;
  startIdSweep(engine);
  let draining = false;
  const health = createHealth({ ...engine, stalled, draining: () => draining });
  const tally: AnswerTally = {};
  addAnswerFigures(figures, engine, tally);
  const routes = routesOf(routePortsOf(engine, tally, health, metrics));
  const gate = createGate(
    createAuthenticator(createKeyRing(redis), () => performance.now()),
    createQuotaGate(createQuotaCounter(redis), Date.now),
  );
  const server = await startServer({
    ...{ host: config.host, port: config.port, sharePort, gate, figures, logger },
    routes: probesOnly ? routes.filter(({ scope }) => scope === null) : routes,
    maxConnections: connectionBound(),
  }).catch((error: unknown) => {
    throw portTaken(config, error);
  });
  closers.add('HTTP server', () => {
    draining = true;
    return server.close(inFlightMs);
  });
  return server.port;
}

export const portTaken = ({ host, port }: ApiOptions['config'], cause: unknown): StartError =>
  new StartError(
    `PORT: ${host}:${port} cannot be listened on: it is taken or not allowed; choose another PORT`,
    { cause },
  );

/** Old event ids are looked for every few hours, by whichever process' turn it is. */
function startIdSweep({ redis, logger, closers }: Engine): void {
  const sweep = singleFlight(async () => {
    try {
      if (await takeSweepTurn(redis))
        logger.info({ forgotten: await sweepIds(redis, Date.now()) }, 'old event ids');
    } catch (error) {
      if (error instanceof ApiError)
        logger.debug({ err: error }, 'Redis is unavailable: old event ids are forgotten later');
      else logger.error({ err: error }, 'old event ids cannot be looked for');
    }
  });
  const timer = setInterval(sweep, idSweepMs);
  closers.add('sweep of event ids', () => clearInterval(timer));
}
