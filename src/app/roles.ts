import type { Config } from '../config.js';
import { type Endpoints, removeApiUrl, writeApiUrl } from '../embedded/data-dir.js';
import type { ClickhouseExitCounts } from '../embedded/servers.js';
import type { Closers } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { collectRedisWarnings } from '../store/redis/server-info.js';
import { portTaken, startApi } from './api.js';
import { findPort, startApiProcesses } from './api-processes.js';
import { startConsumers } from './consumers.js';
import { dashboardLink, localAddress } from './dashboard-link.js';
import { connectState, type Engine, startEngine } from './engine.js';
import { type KeyNote, noKeyNote, prepareKeys } from './keys.js';
import { addAuditFigures } from './maintenance.js';
import { addDeploymentFigures, addStallFigures, byLabel, createMetrics, type Metrics } from './metrics.js';
import { watchForOlderRedis } from './older-redis.js';
import { prepareSchema } from './schema.js';
import { loadSkillsFile, type SkillsFile } from './skills-file.js';

export interface Started {
  readonly port: number | null;
  readonly keyNote: string | null;
  readonly dashboard: string | null;
}

export async function startRole(
  config: Config,
  endpoints: Endpoints,
  skills: SkillsFile | null,
  clickhouseEnds: ClickhouseExitCounts,
  logger: Logger,
  closers: Closers,
): Promise<Started> {
  const { role } = config;
  // Redis first: if it is unavailable, the schema stays unchanged, because it cannot be downgraded.
  const redis = await connectState(endpoints, config, logger, closers);
  const [engine] = await Promise.all([
    startEngine(redis, endpoints, config, logger, closers),
    role === 'api' ? null : prepareSchema(endpoints, logger, closers),
  ]);
  const metrics = createMetrics(role);
  addDeploymentFigures(metrics, engine);
  addAuditFigures(metrics, engine);
  if (role === 'all' && config.clickhouseUrl === null)
    metrics.add('clickhouse_restarts_total', () => byLabel('reason', clickhouseEnds));
  const warnings = config.redisUrl === null ? [] : await collectRedisWarnings(redis);
  for (const warning of warnings) logger.warn(`REDIS_URL: ${warning}`);
  await watchForOlderRedis(engine);
  const consumers = role === 'api' ? {} : startConsumers(engine, config, metrics);
  addStallFigures(metrics, consumers);
  const reasons = () => Object.values(consumers).map((consumer) => consumer.getStallReason());
  const stalled = (): string | null => reasons().find((reason) => reason !== null) ?? null;
  if (role === 'pipeline') {
    const port = config.isPortSet ? await serve(engine, config, metrics, stalled) : null;
    return { port, keyNote: null, dashboard: null };
  }
  const { text, developmentKey } = await keepKeys(engine, config);
  if (skills !== null) await setSkills(skills, engine, config);
  const port = await serve(engine, config, metrics, stalled);
  const address = localAddress(config.host, port);
  if (role === 'all') {
    writeApiUrl(config.dataDir, address);
    closers.add('api.json', () => removeApiUrl(config.dataDir));
  }
  return { port, keyNote: text, dashboard: developmentKey && dashboardLink(address, developmentKey) };
}

/** Adds the configured keys now and whenever the state becomes usable again. */
async function keepKeys(engine: Engine, config: Config): Promise<KeyNote> {
  const { redis, logger } = engine;
  const prepare = () => prepareKeys(config, redis, logger);
  // Register the callback first: the state may change while keys are added.
  engine.onReturn(() => {
    logger.info('the state in Redis can be used, after it could not: keys are added as at a start');
    prepare().catch((error: unknown) =>
      logger.error({ err: error }, 'keys are missing until the next start'),
    );
  });
  return engine.blocked() === null ? prepare() : noKeyNote;
}

async function setSkills(skills: SkillsFile, engine: Engine, { skillLimits }: Config): Promise<void> {
  const { redis, logger } = engine;
  const reason = engine.blocked();
  // Change numbers would restart and clash with those in ClickHouse.
  if (reason !== null) logger.error(`SKILLS_FILE: not loaded, start again when it is rebuilt: ${reason}`);
  else await loadSkillsFile(skills, redis, skillLimits.perTenant, logger);
}

async function serve(
  engine: Engine,
  config: Config,
  metrics: Metrics,
  stalled: () => string | null,
): Promise<number> {
  if (config.apiProcesses === 1 || config.role === 'pipeline') {
    const collect = async () => [await metrics.collect()];
    return startApi(engine, { config, stalled, figures: metrics, collect });
  }
  const port = await findPort(config.host, config.port).catch((error: unknown) => {
    throw portTaken(config, error);
  });
  await startApiProcesses(engine, { ...config, port }, stalled, metrics);
  return port;
}
