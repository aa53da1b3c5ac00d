import { createFitPool, type FitPoolOptions } from '../../compute/job-pools.js';
import { createDeliveryPool } from '../../compute/thread-pools.js';
import { createLimiter, type LimiterOptions } from '../../concurrency.js';
import type { Config } from '../../config.js';
import { dayMs } from '../../domain/base/common.js';
import type { Endpoints } from '../../embedded/data-dir.js';
import type { Consumer } from '../../jobs/consumer.js';
import { maxConcurrentEndpoints, startDeliveryJobs } from '../../jobs/delivery-jobs.js';
import { startDrainJobs } from '../../jobs/drain-jobs.js';
import { type Schedule, schedules, startScheduledRuns } from '../../jobs/scheduled-runs.js';
import { waitAtMost } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import { createCorrectionApplier } from '../../services/corrections/apply-corrections.js';
import { changeTimeZones } from '../../services/corrections/change-time-zones.js';
import { createErasureFinisher } from '../../services/corrections/erasures.js';
import { checkGoals } from '../../services/goals/check-goals.js';
import { calibrateTenants } from '../../services/models/calibrate-tenants.js';
import { type FitDependencies, runFits } from '../../services/models/fit-models.js';
import type { MetricRegistry } from '../../services/operations/metric-registry.js';
import { createJournalDrain } from '../../services/outbox/drain-journal.js';
import { createDrain } from '../../services/outbox/drain-outbox.js';
import { createFactsRecorder } from '../../services/rebuild/record-facts.js';
import { createDeliverer } from '../../services/webhooks/deliver-messages.js';
import { createDispatcher } from '../../services/webhooks/dispatch-messages.js';
import { createMessageRemover } from '../../services/webhooks/remove-messages.js';
import { createKeyStore } from '../../store/access/api-keys.js';
import { createTimeZoneStore } from '../../store/catalogue/time-zones.js';
import { createCorrectionStore } from '../../store/corrections/corrections.js';
import { createErasureStore } from '../../store/corrections/erasures.js';
import { createGoalChecks } from '../../store/learners/goal-checks.js';
import { scanLearners } from '../../store/learners/scan-learners.js';
import { createModelStore } from '../../store/models/model-store.js';
import { createPendingAttempts } from '../../store/outbox/pending-rows.js';
import { reportOnce } from '../../store/redis/commands/recently-used.js';
import { partitionOf } from '../../store/redis/keys.js';
import { readDeployment } from '../../store/redis/server/deployment.js';
import { createEndpointStore } from '../../store/webhooks/endpoints.js';
import { createEventStreams } from '../../store/webhooks/event-streams.js';
import { createMessageStore } from '../../store/webhooks/messages.js';
import { createAttemptWarehouse } from '../../warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../warehouse/ingest/journal-warehouse.js';
import { createModelHistory } from '../../warehouse/ingest/model-history.js';
import { createCorrectionWarehouse } from '../../warehouse/maintenance/correction-warehouse.js';
import { listTenantAnswers } from '../../warehouse/reads/answer-columns.js';
import { createFactsHistory } from '../../warehouse/reads/facts-history.js';
import { createOutcomeReads } from '../../warehouse/reads/forecast-outcomes.js';
import { createStoredRows } from '../../warehouse/reads/stored-rows.js';
import { applyRetentionOnce, runAuditOnce } from '../operations/maintenance.js';
import { type Consumers, toLabeledSamples } from '../operations/metrics.js';
import type { Engine } from '../startup/engine.js';

const hourMs = dayMs / 24;
const retentionIntervalMs = 6 * hourMs;
/** The journal lags by this plus one run. ClickHouse can merge a part every two seconds. */
const journalIntervalMs = 2000;
/** Shorter than the stall limit. */
const maxRunMs = 15_000;
const goalCheckIntervalMs = 5000;
const timeZoneIntervalMs = 5000;
/** For the current run and a last one. Remaining rows stay in Redis. */
const journalStopShare = 2 / 3;

export function startConsumers(engine: Engine, config: Config, metricRegistry: MetricRegistry): Consumers {
  const { fitIntervalHours, auditIntervalHours, attemptRetentionDays: days } = config;
  const { redis, partitions, endpoints, compute, logger } = engine;
  const fits = createFitDependencies(engine, endpoints, { servesRequests: true }, logger);
  const calibrations = createFitDependencies(engine, endpoints, { threads: 1, servesRequests: true }, logger);
  const timeZonePorts = createTimeZonePorts(engine);
  const goals = { checks: createGoalChecks(redis), forecaster: compute, now: Date.now, logger };
  return {
    pipeline: startPipeline(engine),
    fit: startScheduledConsumer(engine, schedules.fit, fitIntervalHours * hourMs, (signal) =>
      runFits(fits, { signal }),
    ),
    calibration: startScheduledConsumer(engine, schedules.calibration, dayMs, (signal) =>
      calibrateTenants(calibrations, Date.now(), signal),
    ),
    audit: startScheduledConsumer(engine, schedules.audit, auditIntervalHours * hourMs, (signal) =>
      runAuditOnce(engine, signal),
    ),
    retention: startScheduledConsumer(
      engine,
      schedules.retention,
      days > 0 ? retentionIntervalMs : 0,
      (signal) => applyRetentionOnce(engine, days, signal),
    ),
    journal: startJournal(engine),
    webhooks: startWebhooks(engine, config, metricRegistry),
    timeZones: startScheduledConsumer(engine, schedules.timeZones, timeZoneIntervalMs, (signal) =>
      changeTimeZones(timeZonePorts, signal),
    ),
    goals: startScheduledConsumer(engine, schedules.goals, goalCheckIntervalMs, (signal) =>
      checkGoals(goals, partitions, AbortSignal.any([signal, AbortSignal.timeout(maxRunMs)])),
    ),
  };
}

/** A batch reads the histories of ten learners. */
const historyLimits: LimiterOptions = {
  maxRunning: 4,
  maxRunningOfTenant: 4,
  maxQueuedOfTenant: 10,
  maxQueueWaitMs: 60_000,
  rejectionMessage: 'Too many histories are being read; retry later.',
};

function createTimeZonePorts(engine: Engine) {
  const { redis, clickhouse, endpoints, partitions, outbox, learners, compute, logger } = engine;
  const limit = createLimiter(historyLimits);
  return {
    ...{ learners, logger, now: Date.now, rewriter: compute },
    timeZones: createTimeZoneStore(redis),
    history: createFactsHistory(clickhouse, endpoints.clickhouseUrl),
    warehouse: createCorrectionWarehouse(clickhouse, endpoints.clickhouseCluster),
    scanLearners: (tenant: string) => scanLearners(redis, tenant),
    partitionOf: (tenant: string, userId: string) => partitionOf(tenant, userId, partitions),
    countPendingRows: async (partition: number) => (await outbox.readBacklog([partition]))[0]?.length ?? 0,
    pendingAttempts: createPendingAttempts(redis, partitions),
    stored: createStoredRows(clickhouse, limit),
    oldestPendingSeconds: async () => (await outbox.facts()).oldestPendingSeconds,
  };
}

export function startPipeline(engine: Engine): Consumer {
  const { endpoints, redis, clickhouse, outbox, partitions, spans, logger } = engine;
  const applyCorrections = createCorrectionApplier({
    store: createCorrectionStore(redis, createErasureReporter(engine)),
    warehouse: createCorrectionWarehouse(clickhouse, endpoints.clickhouseCluster),
    logger,
  });
  const warehouse = createAttemptWarehouse(clickhouse, endpoints.clickhouseCluster);
  const drain = createDrain({ outbox, warehouse, logger, applyCorrections });
  const pipeline = startDrainJobs({ redisUrl: endpoints.redisUrl, partitions, outbox, drain, logger, spans });
  engine.closers.add('pipeline', () => pipeline.close());
  return pipeline;
}

function startWebhooks(
  { redis, partitions, endpoints: { redisUrl }, webhooks: endpoints, logger, closers }: Engine,
  { webhookAllowPrivate: allowPrivate }: Pick<Config, 'webhookAllowPrivate'>,
  metricRegistry: MetricRegistry,
): Consumer {
  const deliveryPool = createDeliveryPool(maxConcurrentEndpoints, logger);
  closers.add('webhook sender', () => deliveryPool.close());
  const messages = createMessageStore(redis);
  const streams = createEventStreams(redis, partitions);
  const counts = { delivered: 0, failed: 0, given_up: 0 };
  const deliver = createDeliverer({
    endpoints,
    messages,
    send: deliveryPool.send,
    allowPrivate,
    counts,
    logger,
  });
  const dispatchEvents = createDispatcher({ streams, endpoints, messages, logger });
  const { listDueEndpoints } = messages;
  const deliveries = startDeliveryJobs({ redisUrl, dispatchEvents, listDueEndpoints, deliver, logger });
  closers.add('webhook delivery', () => deliveries.close());
  metricRegistry.add('webhooks_total', () => toLabeledSamples('outcome', counts));
  metricRegistry.add('webhook_events_waiting', () => streams.countPending());
  return deliveries;
}

/** While Redis is unusable, version numbers would restart and clash with ClickHouse. */
function startScheduledConsumer(
  { endpoints, blockReason, logger, closers }: Engine,
  schedule: Schedule,
  everyMs: number,
  run: (signal: AbortSignal) => Promise<unknown>,
): Consumer {
  const options = { redisUrl: endpoints.redisUrl, everyMs, findBlockReason: blockReason, run, logger };
  const runs = startScheduledRuns(schedule, options);
  closers.add(`${schedule.name} schedule`, () => runs.close());
  return runs;
}

export const createFitDependencies = (
  { redis, clickhouse }: Pick<Engine, 'redis' | 'clickhouse'>,
  { redisUrl, clickhouseUrl }: Endpoints,
  options: Pick<FitPoolOptions, 'threads' | 'servesRequests'>,
  logger: Logger,
): FitDependencies => ({
  tenants: () => listTenantAnswers(clickhouse),
  outcomes: createOutcomeReads(clickhouse),
  models: createModelStore(redis),
  history: createModelHistory(clickhouse),
  openPool: () => createFitPool({ ...options, redisUrl, clickhouseUrl }),
  logger,
});

export function startJournal(engine: Engine): Consumer {
  const { clickhouse, journal, endpoints, logger } = engine;
  const warehouse = createJournalWarehouse(clickhouse);
  const erasures = createErasureSteps(engine);
  const drain = createJournalDrain({ journal, warehouse, findLateEntries: erasures.findLateEntries, logger });
  const recordFacts = createGuardedRecorder(engine);
  // Facts last, so that an error there does not skip the other steps.
  const run = async (signal: AbortSignal): Promise<void> => {
    await drain(signal);
    await erasures.finishErasures(signal);
    await recordFacts();
  };
  const runs = startScheduledRuns(schedules.journal, {
    redisUrl: endpoints.redisUrl,
    everyMs: journalIntervalMs,
    run: (signal) => run(AbortSignal.any([signal, AbortSignal.timeout(maxRunMs)])),
    logger,
  });
  engine.closers.add('journal', async (limitMs) => {
    const until = performance.now() + journalStopShare * limitMs;
    await runs.close();
    await waitAtMost(run(AbortSignal.abort()), until - performance.now());
  });
  return runs;
}

function createGuardedRecorder({
  redis,
  clickhouse,
  endpoints,
  blockReason,
  logger,
}: Engine): () => Promise<void> {
  const unreadable = 'cannot read a stored API key; it is rejected and not recorded in ClickHouse';
  const report = reportOnce((error) => logger.error({ err: error }, unreadable), 1000);
  const store = { deployment: () => readDeployment(redis), keys: createKeyStore(redis, report).all };
  const record = createFactsRecorder(store, createFactsHistory(clickhouse, endpoints.clickhouseUrl));
  return async () => {
    if (blockReason() === null) await record();
  };
}

const unreadableErasure = 'cannot read an erasure; it stays open and the others continue';

const createErasureReporter = ({ logger }: Engine) =>
  reportOnce((error, erasure) => logger.error({ err: error, erasure }, unreadableErasure), 1000);

function createErasureSteps(engine: Engine) {
  const { redis, clickhouse, partitions, endpoints, logger } = engine;
  const store = createErasureStore(redis, partitions, createErasureReporter(engine));
  const warehouse = createCorrectionWarehouse(clickhouse, endpoints.clickhouseCluster);
  const removeMessages = createMessageRemover({
    endpoints: createEndpointStore(redis),
    messages: createMessageStore(redis),
  });
  return {
    findLateEntries: store.findLateEntries,
    finishErasures: createErasureFinisher({
      store,
      messages: { remove: removeMessages },
      warehouse,
      logger,
      now: Date.now,
    }),
  };
}
