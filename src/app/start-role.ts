import type { Config } from '../config.js';
import { type Endpoints, removeApiUrl, writeApiUrl } from '../embedded/data-dir.js';
import type { ClickhouseExitCounts } from '../embedded/servers.js';
import type { Closers } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { collectRedisWarnings } from '../store/redis/server/server-info.js';
import { addAuditMetrics } from './operations/maintenance.js';
import {
  addDeploymentMetrics,
  addStallMetrics,
  createMetrics,
  type Metrics,
  toLabeledSamples,
} from './operations/metrics.js';
import { watchForStaleRedis } from './operations/stale-redis-watch.js';
import { portUnavailable, startApi } from './processes/api.js';
import { findPort, startApiProcesses } from './processes/api-processes.js';
import { startConsumers } from './processes/consumers.js';
import { buildDashboardLink, buildLocalUrl } from './startup/dashboard-link.js';
import { connectStateStore, type Engine, startEngine } from './startup/engine.js';
import { type KeyMessage, noKeyMessage, prepareKeys } from './startup/prepare-keys.js';
import { prepareSchema } from './startup/prepare-schema.js';
import { loadSkillsFile, type SkillsFile } from './startup/skills-file.js';

export interface StartedApp {
  readonly port: number | null;
  readonly keyMessage: string | null;
  readonly dashboardUrl: string | null;
}

export async function startRole(
  config: Config,
  endpoints: Endpoints,
  skills: SkillsFile | null,
  clickhouseExits: ClickhouseExitCounts,
  logger: Logger,
  closers: Closers,
): Promise<StartedApp> {
  const { role } = config;
  // Redis first: if it is unavailable, the schema stays unchanged, because it cannot be downgraded.
  const redis = await connectStateStore(endpoints, config, logger, closers);
  const [engine] = await Promise.all([
    startEngine(redis, endpoints, config, logger, closers),
    role === 'api' ? null : prepareSchema(endpoints, logger, closers),
  ]);
  const metrics = createMetrics(role);
  addDeploymentMetrics(metrics, engine);
  addAuditMetrics(metrics, engine);
  if (role === 'all' && config.clickhouseUrl === null)
    metrics.add('clickhouse_restarts_total', () => toLabeledSamples('reason', clickhouseExits));
  const warnings = config.redisUrl === null ? [] : await collectRedisWarnings(redis);
  for (const warning of warnings) logger.warn(`REDIS_URL: ${warning}`);
  await watchForStaleRedis(engine);
  const consumers = role === 'api' ? {} : startConsumers(engine, config, metrics);
  addStallMetrics(metrics, consumers);
  const reasons = () => Object.values(consumers).map((consumer) => consumer.getStallReason());
  const stallReason = (): string | null => reasons().find((reason) => reason !== null) ?? null;
  if (role === 'pipeline') {
    const port = config.isPortSet ? await serve(engine, config, metrics, stallReason) : null;
    return { port, keyMessage: null, dashboardUrl: null };
  }
  const { text, developmentKey } = await maintainKeys(engine, config);
  if (skills !== null) await applySkillsFile(skills, engine, config);
  const port = await serve(engine, config, metrics, stallReason);
  const address = buildLocalUrl(config.host, port);
  if (role === 'all') {
    writeApiUrl(config.dataDir, address);
    closers.add('api.json', () => removeApiUrl(config.dataDir));
  }
  return {
    port,
    keyMessage: text,
    dashboardUrl: developmentKey && buildDashboardLink(address, developmentKey),
  };
}

/** Adds the configured keys now and whenever the state becomes usable again. */
async function maintainKeys(engine: Engine, config: Config): Promise<KeyMessage> {
  const { redis, logger } = engine;
  const prepare = () => prepareKeys(config, redis, logger);
  // Register the callback first: the state may change while keys are added.
  engine.onUsable(() => {
    logger.info('the state in Redis is usable again; configured keys are added');
    prepare().catch((error: unknown) =>
      logger.error({ err: error }, 'cannot add configured keys; restart the service to add them'),
    );
  });
  return engine.blockReason() === null ? prepare() : noKeyMessage;
}

async function applySkillsFile(skills: SkillsFile, engine: Engine, { skillLimits }: Config): Promise<void> {
  const { redis, logger } = engine;
  const reason = engine.blockReason();
  // Change numbers would restart and clash with those in ClickHouse.
  if (reason !== null)
    logger.error(`SKILLS_FILE: not loaded: ${reason}. Restart the service after the problem is fixed.`);
  else await loadSkillsFile(skills, redis, skillLimits.perTenant, logger);
}

async function serve(
  engine: Engine,
  config: Config,
  metrics: Metrics,
  stallReason: () => string | null,
): Promise<number> {
  if (config.apiProcesses === 1 || config.role === 'pipeline') {
    const collect = async () => [await metrics.collect()];
    return startApi(engine, { config, stallReason, metricRegistry: metrics, collect });
  }
  const port = await findPort(config.host, config.port).catch((error: unknown) => {
    throw portUnavailable(config, error);
  });
  await startApiProcesses(engine, { ...config, port }, stallReason, metrics);
  return port;
}
