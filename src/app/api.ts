/** The front end of one process: routes, checks and what they need of the engine. */

import { type Limiter, singleFlight } from '../concurrency.js';
import type { Config } from '../config.js';
import { ApiError } from '../errors.js';
import { createAuthenticator } from '../http/auth.js';
import { createConnections } from '../http/connections.js';
import { createGate } from '../http/gate.js';
import { createQuotaGate } from '../http/quota.js';
import { createRequestFigures } from '../http/request-figures.js';
import type { Route } from '../http/route.js';
import { routesOf } from '../http/routes.js';
import { startServer } from '../http/server.js';
import { createUnreadAnswers } from '../http/unread-answers.js';
import { StartError } from '../lifecycle.js';
import type { Figures } from '../services/read/figures.js';
import { createHealth, type Health } from '../services/read/health.js';
import { type AnswerTally, createAttemptRecorder } from '../services/record/record-attempts.js';
import { createKeyRing, createQuotaCounter } from '../store/access/api-keys.js';
import { sweepIds, takeSweepTurn } from '../store/learners/id-sweep.js';
import { createReadGuard } from '../warehouse/clickhouse/read-guard.js';
import { countSkillAnswers } from '../warehouse/reads/answer-columns.js';
import { createAttemptHistory } from '../warehouse/reads/attempt-history.js';
import { createVelocityHistory } from '../warehouse/reads/velocity-history.js';
import type { Engine } from './engine.js';
import { createReadLimiter, learnerDataPorts } from './learner-data.js';
import { connectionBound } from './open-files.js';
import { addAnswerFigures } from './process-figures.js';

export interface ApiOptions {
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
  startIdSweep(engine);
  let draining = false;
  const health = createHealth({ ...engine, stalled: options.stalled, draining: () => draining });
  const server = await listen(engine, options, routes(engine, options, health));
  engine.closers.add('HTTP server', () => {
    draining = true;
    return server.close(inFlightMs);
  });
  return server.port;
}

function routes(
  engine: Engine,
  { probesOnly, figures, metrics }: ApiOptions,
  health: Health,
): readonly Route[] {
  const { compute: forecaster, models, skills, goals, catalogue, outbox, clickhouse } = engine;
  const now = Date.now;
  const tally: AnswerTally = {};
  addAnswerFigures(figures, engine, tally);
  const limit = createReadLimiter();
  const all = routesOf({
    recorder: createAttemptRecorder(forecaster, tally, now),
    forecaster,
    ...historyPorts(engine, limit),
    goals: { goals, now },
    skills: {
      ...{ models, skills, catalogue, now },
      answers: (tenant, skillId) => limit(tenant, () => countSkillAnswers(clickhouse, tenant, skillId)),
      oldestPendingSeconds: async () => (await outbox.facts()).oldestPendingSeconds,
    },
    ...learnerDataPorts(engine, limit),
    health,
    metrics: singleFlight(metrics),
  });
  return probesOnly ? all.filter(({ scope }) => scope === null) : all;
}

/** Both can do without ClickHouse. */
function historyPorts({ learners, models, clickhouse, outbox, logger }: Engine, limit: Limiter) {
  const sourceLagSeconds = () =>
    outbox.facts().then(
      ({ oldestPendingSeconds }) => oldestPendingSeconds,
      () => null,
    );
  const shared = { learners, models, now: Date.now, sourceLagSeconds, logger };
  const guard = createReadGuard(limit);
  return {
    mastery: { ...shared, history: createAttemptHistory(clickhouse, guard) },
    velocity: { ...shared, history: createVelocityHistory(clickhouse, guard) },
  };
}

async function listen(
  { redis, logger }: Engine,
  { config, sharePort, figures }: ApiOptions,
  table: readonly Route[],
) {
  const { host, port } = config;
  const gate = createGate(
    createAuthenticator(createKeyRing(redis), () => performance.now()),
    createQuotaGate(createQuotaCounter(redis), Date.now),
  );
  try {
    return await startServer({
      ...{ host, port, sharePort, routes: table, gate, logger },
      figures: createRequestFigures(figures),
      unread: createUnreadAnswers(figures),
      connections: createConnections(connectionBound(), figures, logger),
    });
  } catch (error) {
    throw portTaken(config, error);
  }
}

export const portTaken = ({ host, port }: Pick<Config, 'host' | 'port'>, cause: unknown): StartError =>
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
