/** What the routes of one process need of its engine, and how much of it runs at once. */
import { createLimiter, type LimiterOptions, singleFlight } from '../concurrency.js';
import type { RoutePorts } from '../http/routes.js';
import { createLearnerExports } from '../services/read/export-learner.js';
import type { Health } from '../services/read/health.js';
import { type AnswerTally, createAttemptRecorder } from '../services/record/record-attempts.js';
import { createErasureStore } from '../store/corrections/erasures.js';
import { createLearnerRecords } from '../store/learners/learner-reads.js';
import { createWaitingAttempts } from '../store/outbox/waiting-rows.js';
import { createReadGuard } from '../warehouse/clickhouse/read-guard.js';
import { createCorrectionWarehouse } from '../warehouse/maintenance/correction-warehouse.js';
import { countSkillAnswers } from '../warehouse/reads/answer-columns.js';
import { createLearnerTables } from '../warehouse/reads/learner-rows.js';
import { createAttemptHistory, createVelocityHistory } from '../warehouse/reads/skill-history.js';
import { createStoredAttempts, createStoredHistories } from '../warehouse/reads/stored-attempts.js';
import { type Engine, whileUsable } from './engine.js';

const refusal = 'Too many read what is stored at the same time; try again later';
/**
 * Of all reads of ClickHouse that a caller waits for. Six of the client's eight connections: what is written needs one, and
 * exports have another. One tenant gets half of them at most, and waits no longer than a page may take to build up.
 */
const readLimits: LimiterOptions = {
  maxRunning: 6,
  maxRunningOfTenant: 3,
  maxQueuedOfTenant: 50,
  maxQueueWaitMs: 2000,
  refusal,
};
/** Exports are few, and each page of them gets its turn. */
const exportLimits: LimiterOptions = {
  maxRunning: 1,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 100,
  maxQueueWaitMs: 60_000,
  refusal,
};
/** Each of 20,000 answers takes a hundred megabytes; the one thread replays one while the next is read. */
const retractionLimits: LimiterOptions = {
  maxRunning: 2,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 10,
  maxQueueWaitMs: 10_000,
  refusal: 'Too many answers are taken back; try again later',
};

const now = Date.now;

/** @param tally counts what became of each answer */
export function routePortsOf(
  engine: Engine,
  tally: AnswerTally,
  health: Health,
  metrics: RoutePorts['metrics'],
): RoutePorts {
  const { redis, clickhouse, partitions, outbox, compute, blocked, logger } = engine;
  const { learners, models, skills, goals, catalogue } = engine;
  const limit = createLimiter(readLimits);
  const guard = createReadGuard(limit);
  const inExport = createLimiter(exportLimits);
  const oldestPendingSeconds = async () => (await outbox.facts()).oldestPendingSeconds;
  const sourceLagSeconds = () => oldestPendingSeconds().catch(() => null);
  /** They can do without ClickHouse. */
  const history = { learners, models, now, sourceLagSeconds, logger };
  const waiting = createWaitingAttempts(redis, partitions);
  const stored = createStoredAttempts(clickhouse);
  const histories = createStoredHistories(clickhouse);
  const records = createLearnerRecords(redis, partitions);
  const receipts = createCorrectionWarehouse(clickhouse);
  return {
    recorder: createAttemptRecorder(compute, tally, now),
    forecaster: compute,
    mastery: { ...history, history: createAttemptHistory(clickhouse, guard) },
    velocity: { ...history, history: createVelocityHistory(clickhouse, guard) },
    goals: { goals, now },
    skills: {
      ...{ models, skills, catalogue, now, oldestPendingSeconds },
      answers: (tenant, skillId) => limit(tenant, () => countSkillAnswers(clickhouse, tenant, skillId)),
    },
    attempts: {
      ...{ learners, waiting },
      stored: { read: (range) => limit(range.tenant, () => stored.read(range)) },
    },
    retraction: {
      ...{ learners, models, now, waiting, rewriter: compute, limit: createLimiter(retractionLimits) },
      histories: {
        read: (tenant, userId, to) => limit(tenant, () => histories.read(tenant, userId, to)),
      },
    },
    erasures: {
      erasures: createErasureStore(redis, partitions),
      receipts: { find: (tenant, id) => limit(tenant, () => receipts.find(tenant, id)) },
    },
    exportLearner: createLearnerExports({
      records: { ...records, ...whileUsable(blocked, { state: records.state }) },
      waiting,
      stored: { read: (range) => inExport(range.tenant, () => stored.read(range)) },
      tables: createLearnerTables(clickhouse, inExport),
      now,
    }),
    health,
    metrics: singleFlight(metrics),
  };
}
