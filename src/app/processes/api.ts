import { createLimiter, type LimiterOptions, singleFlight } from '../../concurrency.js';
import type { Config } from '../../config.js';
import { toKeyId } from '../../contracts/access/access.js';
import { ApiError } from '../../errors.js';
import { recordActivities } from '../../http/activity.js';
import { createAuthenticator } from '../../http/authenticator.js';
import { createGate, createQuotaGate } from '../../http/gate.js';
import { createAllPageRoutes, withDescription } from '../../http/pages.js';
import { createRoutes, type RoutePorts } from '../../http/routes.js';
import { startServer } from '../../http/server.js';
import { StartError } from '../../lifecycle.js';
import { type AnswerTally, createAttemptRecorder } from '../../services/answers/record-attempts.js';
import { createTenantCalendars } from '../../services/catalogue/tenant-calendars.js';
import { createLearnerExports } from '../../services/learners/export-learner.js';
import { createHealth, type Health } from '../../services/operations/health.js';
import { createKeyTraffic, type KeyTraffic } from '../../services/operations/key-traffic.js';
import { createLiveStream } from '../../services/operations/live-stream.js';
import { createKeyLookup, createKeyStore, createQuotaCounter } from '../../store/access/api-keys.js';
import { createTimeZoneStore } from '../../store/catalogue/time-zones.js';
import { createMappingStore } from '../../store/catalogue/xapi-mappings.js';
import { createErasureStore } from '../../store/corrections/erasures.js';
import { createParkedRows } from '../../store/corrections/redrive.js';
import { acquireSweepTurn, sweepIds } from '../../store/learners/id-sweep.js';
import { createLearnerExport } from '../../store/learners/learner-reads.js';
import { createModelStore } from '../../store/models/model-store.js';
import { type ActivityStore, createActivityStore } from '../../store/operations/activity-store.js';
import { createMinuteStore } from '../../store/operations/minute-store.js';
import { createPendingAttempts } from '../../store/outbox/pending-rows.js';
import { readDeployment } from '../../store/redis/server/deployment.js';
import { fetchRedisVersion } from '../../store/redis/server/server-info.js';
import { createMessageStore } from '../../store/webhooks/messages.js';
import { createModelHistory } from '../../warehouse/ingest/model-history.js';
import { findReceipt, listReceipts } from '../../warehouse/maintenance/erasure-receipts.js';
import { countSkillAnswers } from '../../warehouse/reads/answer-columns.js';
import { createClassAnswers } from '../../warehouse/reads/class-answers.js';
import { createFactsHistory } from '../../warehouse/reads/facts-history.js';
import { createLearnerList } from '../../warehouse/reads/learner-list.js';
import { createModelChanges } from '../../warehouse/reads/model-changes.js';
import { createModelQuality } from '../../warehouse/reads/model-quality.js';
import { createReadGuard, createSkillHistory } from '../../warehouse/reads/skill-history.js';
import { createSkillReads } from '../../warehouse/reads/skill-statistics.js';
import { createStoredRows } from '../../warehouse/reads/stored-rows.js';
import { createTenantRead } from '../../warehouse/reads/tenant-read.js';
import { fetchWarehouseVersions } from '../../warehouse/schema/create-schema.js';
import { createAuditPorts } from '../operations/maintenance.js';
import {
  addAnswerMetrics,
  type CollectedMetrics,
  formatMetrics,
  type Metrics,
} from '../operations/metrics.js';
import { startMinuteRecorder } from '../operations/minute-recorder.js';
import { type Engine, rejectWhenBlocked } from '../startup/engine.js';
import { computeConnectionLimit } from '../startup/open-files.js';

interface ApiOptions {
  readonly config: Pick<Config, 'role' | 'apiProcesses' | 'host' | 'port' | 'webhookAllowPrivate'>;
  readonly stallReason: () => string | null;
  readonly metricRegistry: Metrics;
  readonly collect: () => Promise<readonly CollectedMetrics[]>;
}

/** Share of the 10 s shutdown time, for requests in flight. */
const shutdownGraceMs = 4000;

/** @returns the port. @throws StartError if it is taken */
export async function startApi(engine: Engine, options: ApiOptions): Promise<number> {
  const { redis, logger, closers, spans } = engine;
  const { config, stallReason, metricRegistry, collect } = options;
  const { role, apiProcesses, host, port } = config;
  const servesProbesOnly = role === 'pipeline';
  startIdSweep(engine);
  let isDraining = false;
  const health = createHealth({ ...engine, stallReason, isDraining: () => isDraining });
  const tally: AnswerTally = {};
  addAnswerMetrics(metricRegistry, engine, tally);
  const keyRing = createKeyLookup(redis);
  const live = createLiveStream({ collect, findKey: keyRing.find });
  const metrics = async () => formatMetrics(await collect());
  const keyTraffic = createKeyTraffic();
  const ports = createRoutePorts(engine, config, tally, keyTraffic, health);
  const allRoutes = createRoutes({ ...ports, live, metrics: singleFlight(metrics) });
  const routes = recordActivities(allRoutes, ports.activity, logger);
  const gate = createGate(
    createAuthenticator(keyRing, () => performance.now()),
    createQuotaGate(createQuotaCounter(redis), Date.now),
  );
  if (!servesProbesOnly)
    await startMinuteRecorder({
      ...{ collect: metricRegistry.collect, keyTraffic, logger, closers },
      minutes: rejectWhenBlocked(engine.blockReason, createMinuteStore(redis)),
      keys: rejectWhenBlocked(engine.blockReason, createKeyStore(redis)),
    });
  const server = await startServer({
    ...{ host, port, gate, figures: metricRegistry, keyTraffic, logger, spans },
    sharePort: apiProcesses > 1 && !servesProbesOnly,
    routes: servesProbesOnly
      ? routes.filter(({ scope, protocol }) => scope === null && !protocol)
      : [...withDescription(routes), ...createAllPageRoutes()],
    maxConnections: computeConnectionLimit(),
  }).catch((error: unknown) => {
    throw portUnavailable(config, error);
  });
  closers.add('HTTP server', () => {
    isDraining = true;
    live.close();
    return server.close(shutdownGraceMs);
  });
  return server.port;
}

export const portUnavailable = ({ host, port }: Pick<Config, 'host' | 'port'>, cause: unknown): StartError =>
  new StartError(
    `PORT: cannot listen on ${host}:${port}: the port is in use or not permitted. Choose another PORT.`,
    { cause },
  );

const idSweepMs = 60_000;

function startIdSweep({ redis, logger, closers }: Engine): void {
  const sweep = singleFlight(async () => {
    try {
      const forgotten = (await acquireSweepTurn(redis)) ? await sweepIds(redis, Date.now()) : 0;
      if (forgotten > 0) logger.info({ forgotten }, 'expired event ids deleted');
    } catch (error) {
      if (error instanceof ApiError)
        logger.debug({ err: error }, 'Redis is unavailable; expired event ids are deleted later');
      else logger.error({ err: error }, 'cannot search for expired event ids');
    }
  });
  const timer = setInterval(sweep, idSweepMs);
  closers.add('event id sweep', () => clearInterval(timer));
}

const rejectionMessage = 'Too many reads of stored data are in progress; retry later.';
/** ClickHouse reads use six of the client's eight connections. Writes and exports use the rest. */
const readLimits: LimiterOptions = {
  maxRunning: 6,
  maxRunningOfTenant: 3,
  maxQueuedOfTenant: 50,
  maxQueueWaitMs: 2000,
  rejectionMessage,
};
/** A response with 200,000 masteries occupies tens of megabytes. */
const classLimits: LimiterOptions = {
  maxRunning: 4,
  maxRunningOfTenant: 2,
  maxQueuedOfTenant: 50,
  maxQueueWaitMs: 5000,
  rejectionMessage: 'Too many class requests are in progress; retry later.',
};
const exportLimits: LimiterOptions = {
  maxRunning: 1,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 100,
  maxQueueWaitMs: 60_000,
  rejectionMessage,
};
/** A history of 20,000 answers occupies 100 MB. */
const retractionLimits: LimiterOptions = {
  maxRunning: 2,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 10,
  maxQueueWaitMs: 10_000,
  rejectionMessage: 'Too many retractions are in progress; retry later.',
};

const now = Date.now;

function createRoutePorts(
  engine: Engine,
  { webhookAllowPrivate: allowPrivate }: ApiOptions['config'],
  tally: AnswerTally,
  keyTraffic: KeyTraffic,
  health: Health,
): Omit<RoutePorts, 'live' | 'metrics'> & { readonly activity: ActivityStore } {
  const { redis, clickhouse, partitions, outbox, compute, blockReason, logger } = engine;
  const { learners, models, skills, goals, groups, profiles, catalogue } = engine;
  const limitReads = createLimiter(readLimits);
  const limitClasses = createLimiter(classLimits);
  const stored = createStoredRows(clickhouse, limitReads);
  const tenantRead = createTenantRead(clickhouse, limitReads);
  const pendingAttempts = createPendingAttempts(redis, partitions);
  const records = createLearnerExport(redis, partitions);
  const logUnreadable = (what: string) => (error: unknown) =>
    logger.error({ err: error }, `cannot read ${what}; it is omitted from the list`);
  const erasures = createErasureStore(redis, partitions, logUnreadable('an erasure'));
  const keys = rejectWhenBlocked(blockReason, createKeyStore(redis, logUnreadable('a stored API key')));
  const { findErased, isOpen } = erasures;
  const erasureLookup = rejectWhenBlocked(blockReason, { findErased, isOpen });
  const recorder = createAttemptRecorder(compute, tally, keyTraffic.countAnswers, now);
  const retraction = {
    ...{ learners, models, now, pendingAttempts, stored, rewriter: compute },
    limit: createLimiter(retractionLimits),
  };
  const oldestPendingSeconds = async () => (await outbox.facts()).oldestPendingSeconds;
  const sourceLagSeconds = () => oldestPendingSeconds().catch(() => null);
  const facts = createFactsHistory(clickhouse, engine.endpoints.clickhouseUrl);
  const timeZones = rejectWhenBlocked(blockReason, createTimeZoneStore(redis));
  const { calendarOf } = createTenantCalendars(models);
  const history = {
    ...{ learners, models, now, logger, sourceLagSeconds },
    history: createSkillHistory(clickhouse, createReadGuard(limitReads)),
  };
  return {
    recorder,
    xapi: {
      ...{ recorder, retraction, tally, logger, now },
      mappings: rejectWhenBlocked(blockReason, createMappingStore(redis)),
      history: facts,
    },
    forecaster: compute,
    mastery: { ...history, limit: limitClasses },
    velocity: history,
    learners: { ...history, list: createLearnerList(tenantRead), erasures: erasureLookup },
    goals: { goals, calendarOf, now },
    groups: {
      ...{ ...history, groups, profiles, forecaster: compute, limit: limitClasses },
      history: createClassAnswers(tenantRead),
    },
    settings: {
      timeZones,
      history: facts,
      now,
    },
    skills: {
      ...{ models, skills, catalogue, now, oldestPendingSeconds },
      countAnswers: (tenant, skillId) =>
        limitReads(tenant, () => countSkillAnswers(clickhouse, tenant, skillId)),
    },
    overview: {
      ...{ skills, calendarOf, now, logger, oldestPendingSeconds, sourceLagSeconds },
      statistics: createSkillReads(tenantRead),
      quality: createModelQuality(tenantRead),
      changes: createModelChanges(tenantRead),
      models: rejectWhenBlocked(blockReason, createModelStore(redis)),
      history: createModelHistory(clickhouse),
    },
    attempts: { ...history, pendingAttempts, stored, erasures: erasureLookup },
    retraction,
    erasures: {
      ...{ erasures, groups },
      receipts: {
        find: (tenant, id) => limitReads(tenant, () => findReceipt(clickhouse, tenant, id)),
        list: (tenant, after, atMost) => listReceipts(tenantRead, tenant, after, atMost),
      },
    },
    exportLearner: createLearnerExports({
      ...{ pendingAttempts, now, stored: createStoredRows(clickhouse, createLimiter(exportLimits)) },
      records: { ...records, ...rejectWhenBlocked(blockReason, { readState: records.readState }) },
    }),
    keys: {
      ...keys,
      timeZones,
      logChange: (act, { keyHash, tenant }, by) =>
        logger.info({ key: toKeyId(keyHash), tenant, by: toKeyId(by.keyHash) }, `API key ${act}`),
    },
    parked: createParkedRows(redis),
    audits: createAuditPorts(engine),
    activity: createActivityStore(redis),
    history: { minutes: createMinuteStore(redis), keys, now },
    deployment: {
      readFacts: () => readDeployment(redis),
      readRedisVersion: () => fetchRedisVersion(redis),
      readClickhouseVersions: (tenant) => limitReads(tenant, () => fetchWarehouseVersions(clickhouse)),
    },
    webhooks: { endpoints: engine.webhooks, messages: createMessageStore(redis), allowPrivate },
    health,
  };
}
