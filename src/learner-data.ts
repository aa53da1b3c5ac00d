/** What tells a learner's data as it is stored: ports over Redis and ClickHouse. */
import { type Engine, whileUsable } from './engine.js';
import type { ErasurePorts } from './services/erasures.js';
import { createLearnerExports, type ExportLearner } from './services/export-learner.js';
import type { AttemptPorts } from './services/list-attempts.js';
import type { TakeBackPorts } from './services/take-back.js';
import { createErasureStore } from './store/erasures.js';
import { createLearnerRecords } from './store/told-records.js';

import { createWaitingAttempts } from './store/waiting-attempts.js';
import { createErasureWarehouse } from './warehouse/erasure-warehouse.js';
import { createStoredAttempts, createStoredHistories } from './warehouse/stored-attempts.js';
import { createLearnerTables } from './warehouse/told-rows.js';

interface LearnerDataPorts {
  readonly attempts: AttemptPorts;
  readonly takeBack: TakeBackPorts;
  readonly erasures: ErasurePorts;
  readonly exportLearner: ExportLearner;
}

export function learnerDataPorts(engine: Engine): LearnerDataPorts {
  const { redis, clickhouse, partitions, learners, models, compute, blocked } = engine;
  const waiting = createWaitingAttempts(redis, partitions);
  const stored = createStoredAttempts(clickhouse);
  const records = createLearnerRecords(redis, partitions);
  const exportLearner = createLearnerExports({
    records: {
      ...records,
      state: (tenant, userId) => whileUsable(blocked, () => records.state(tenant, userId)),
    },
    waiting,
    stored,
    tables: createLearnerTables(clickhouse),
    now: Date.now,
  });
  const erasures = {
    erasures: createErasureStore(redis, partitions),
    receipts: createErasureWarehouse(clickhouse),
  };
  const takeBack = {
    learners,
    models,
    now: Date.now,
    waiting,
    histories: createStoredHistories(clickhouse),
    rewriter: compute,
  };
  return { attempts: { learners, waiting, stored }, takeBack, erasures, exportLearner };
}
