/** Reading and changing a learner's stored data, over Redis and ClickHouse. */

import { createLimiter, type Limiter, type LimiterOptions } from '../concurrency.js';
import type { Erasures } from '../services/corrections/erasures.js';
import type { RetractionPorts } from '../services/corrections/retract-answer.js';
import { createLearnerExports, type ExportLearner } from '../services/read/export-learner.js';
import type { AttemptPorts } from '../services/read/list-attempts.js';
import { createErasureStore } from '../store/corrections/erasures.js';
import { createLearnerRecords } from '../store/learners/learner-export.js';
import { createWaitingAttempts } from '../store/outbox/waiting-rows.js';
import { createCorrectionWarehouse } from '../warehouse/maintenance/correction-warehouse.js';
import { createLearnerTables } from '../warehouse/reads/learner-rows.js';
import {
  type AttemptRange,
  createStoredAttempts,
  createStoredHistories,
} from '../warehouse/reads/stored-attempts.js';
import { type Engine, whileUsable } from './engine.js';

interface LearnerDataPorts {
  readonly attempts: AttemptPorts;
  readonly retraction: RetractionPorts;
  readonly erasures: Erasures;
  readonly exportLearner: ExportLearner;
}

const refusal = 'Too many read what is stored at the same time; try again later';
/**
 * Six of the client's eight connections: what is written needs one, and exports have another. A crowd of one tenant's would
 * take all of them, and hold up what other tenants send and ask: half are the most that it gets, and who of it finds no
 * place is kept waiting for no longer than a page may take to build up.
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

/** For all reads of ClickHouse that a caller waits for. */
export const createReadLimiter = (): Limiter => createLimiter(readLimits);

/** @param limit of `createReadLimiter` */
export function learnerDataPorts(engine: Engine, limit: Limiter): LearnerDataPorts {
  const { redis, clickhouse, partitions, learners, models, compute, blocked } = engine;
  const waiting = createWaitingAttempts(redis, partitions);
  const stored = createStoredAttempts(clickhouse);
  const histories = createStoredHistories(clickhouse);
  const receipts = createCorrectionWarehouse(clickhouse);
  const inExport = createLimiter(exportLimits);
  const records = createLearnerRecords(redis, partitions);
  const exportLearner = createLearnerExports({
    records: { ...records, ...whileUsable(blocked, { state: records.state }) },
    waiting,
    stored: { read: (range) => inExport(range.tenant, () => stored.read(range)) },
    tables: createLearnerTables(clickhouse, inExport),
    now: Date.now,
  });
  const erasures = {
    erasures: createErasureStore(redis, partitions),
    receipts: { find: (tenant: string, id: string) => limit(tenant, () => receipts.find(tenant, id)) },
  };
  const retraction = {
    learners,
    models,
    now: Date.now,
    waiting,
    histories: {
      read: (tenant: string, userId: string, to: number) =>
        limit(tenant, () => histories.read(tenant, userId, to)),
    },
    rewriter: compute,
    limit: createLimiter(retractionLimits),
  };
  const attempts = {
    learners,
    waiting,
    stored: { read: (range: AttemptRange) => limit(range.tenant, () => stored.read(range)) },
  };
  return { attempts, retraction, erasures, exportLearner };
}
