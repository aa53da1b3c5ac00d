/** Puts the parts of one process together, by its role. */

import type { Config } from '../config.js';
import type { Endpoints } from '../embedded/data-dir.js';
import type { ClickhouseEnds } from '../embedded/servers.js';
import type { Closers } from '../lifecycle.js';
import { createOutbox } from '../store/outbox/outbox.js';
import { redisWarnings } from '../store/redis/deployment.js';
import type { Logger } from '../telemetry.js';
import { version } from '../version.js';
import { portTaken, startApi } from './api.js';
import { type ApiProcessParts, findPort, startApiProcesses } from './api-processes.js';
import type { Started } from './app.js';
import { addAuditFigures, scheduleAudits } from './audit.js';
import { connectState, type Engine, startEngine } from './engine.js';
import { scheduleFits } from './fits.js';
import { runJournal } from './journal.js';
import { prepareKeys } from './keys.js';
import { createMetrics, type Metrics, metricsText } from './metrics.js';
import { watchForOlderRedis } from './older-redis.js';
import { runPipeline } from './pipeline.js';
import {
  addClickhouseEnds,
  addDeploymentFigures,
  addStallFigures,
  type Consumers,
} from './process-figures.js';
import { scheduleRetention } from './retention.js';
import { prepareSchema } from './schema.js';
import { loadSkillsFile, type SkillsFile } from './skills-file.js';

/** Starts everything that the role asks for, but for the servers. @throws StartError for what the user can mend */
export async function startRole(
  { config, endpoints, skills, clickhouseEnds }: RoleSettings,
  logger: Logger,
  closers: Closers,
): Promise<Started> {
  // First, so that a start without Redis leaves ClickHouse as it is: there is no way back to an older schema.
  const redis = await connectState(endpoints, config, logger, closers);
  const [engine] = await Promise.all([
    startEngine(redis, endpoints, config, logger, closers),
    config.role === 'api' ? null : prepareSchema(endpoints, logger, closers),
  ]);
  const metrics = createMetrics(config.role);
  addDeploymentFigures(metrics, engine, createOutbox(engine.redis, engine.partitions));
  addAuditFigures(metrics, engine);
  if (config.role === 'all' && config.clickhouseUrl === null) addClickhouseEnds(metrics, clickhouseEnds);
  if (config.redisUrl !== null) await warnOfRisks(engine, logger);
  const askOfAge = await watchForOlderRedis(engine, logger, closers);
  const consumers =
    config.role === 'api' ? {} : startConsumers({ config, endpoints, engine }, logger, closers);
  askOfAge();
  addStallFigures(metrics, consumers);
  const stalled = () => stallOf(consumers);
  if (config.role === 'pipeline') {
    const port = config.portIsSet
      ? await serve({ config, engine, stalled, metrics, probesOnly: true }, logger, closers)
      : null;
    return { port, keyNote: null };
  }
  const prepare = () => prepareKeys(config, engine.redis, logger);
  // First, for the state may change while keys are added.
  engine.onReturn(() => {
    logger.info('the state in Redis can be used, after it could not: keys are added as at a start');
    prepare().catch((error: unknown) =>
      logger.error({ err: error }, 'keys are missing until the next start'),
    );
  });
  const keyNote = engine.blocked() === null ? await prepare() : null;
  if (skills !== null) await setSkills(skills, engine, config, logger);
  const port =
    config.apiProcesses === 1
      ? await serve({ config, engine, stalled, metrics, probesOnly: false }, logger, closers)
      : await serveInProcesses({ config, endpoints, stalled, metrics }, logger, closers);
  return { port, keyNote };
}

/** What is known before anything starts. */
export interface RoleSettings {
  readonly config: Config;
  readonly endpoints: Endpoints;
  readonly skills: SkillsFile | null;
  readonly clickhouseEnds: ClickhouseEnds;
}

interface Parts {
  readonly config: Config;
  readonly endpoints: Endpoints;
  readonly engine: Engine;
}

/** Everything that moves by itself, by the name that figures have. */
function startConsumers({ config, endpoints, engine }: Parts, logger: Logger, closers: Closers): Consumers {
  const outbox = createOutbox(engine.redis, engine.partitions);
  return {
    pipeline: runPipeline(endpoints, engine, outbox, logger, closers),
    fit: scheduleFits(config.fitIntervalHours, engine, endpoints, logger, closers),
    audit: scheduleAudits(config.auditIntervalHours, engine, endpoints, logger, closers),
    retention: scheduleRetention(config.attemptRetentionDays, engine, endpoints, logger, closers),
    journal: runJournal(endpoints, engine, logger, closers),
  };
}

/** Why one of them does not move, or null. */
const stallOf = (consumers: Consumers): string | null =>
  Object.values(consumers)
    .map(({ stalled }) => stalled())
    .find((reason) => reason !== null) ?? null;

interface Serving {
  readonly config: Config;
  readonly engine: Engine;
  readonly stalled: () => string | null;
  readonly metrics: Metrics;
  readonly probesOnly: boolean;
}

function serve(
  { config, engine, stalled, metrics, probesOnly }: Serving,
  logger: Logger,
  closers: Closers,
): Promise<number> {
  const options = {
    config,
    engine,
    outbox: createOutbox(engine.redis, engine.partitions),
    sharePort: false,
    probesOnly,
    stalled,
    figures: metrics,
    metrics: async () => metricsText([await metrics.collect()]),
    version,
  };
  return startApi(options, logger, closers);
}

async function serveInProcesses(parts: ApiProcessParts, logger: Logger, closers: Closers): Promise<number> {
  const { config } = parts;
  const port = await findPort(config.host, config.port).catch((error: unknown) => {
    throw portTaken(config, error);
  });
  await startApiProcesses({ ...parts, config: { ...config, port } }, logger, closers);
  return port;
}

async function setSkills(
  skills: SkillsFile,
  engine: Engine,
  { skillLimits }: Config,
  logger: Logger,
): Promise<void> {
  const reason = engine.blocked();
  // The numbers of changes would begin anew, beside those in ClickHouse.
  if (reason !== null) logger.error(`SKILLS_FILE: not loaded, start again when it is rebuilt: ${reason}`);
  else await loadSkillsFile(skills, engine.redis, skillLimits.perTenant, logger);
}

async function warnOfRisks(engine: Engine, logger: Logger): Promise<void> {
  for (const warning of await redisWarnings(engine.redis)) logger.warn(`REDIS_URL: ${warning}`);
}
