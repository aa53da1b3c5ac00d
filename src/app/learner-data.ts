/** What tells a learner's data as it is stored: ports over Redis and ClickHouse. */

import type { ErasurePorts } from '../services/corrections/erasures.js';
import type { TakeBackPorts } from '../services/corrections/take-back.js';
import { createLearnerExports, type ExportLearner } from '../services/read/export-learner.js';
import type { AttemptPorts } from '../services/read/list-attempts.js';
import { createTurns, type TurnRules, type Turns } from '../services/record/turns.js';
import { createErasureStore } from '../store/corrections/erasures.js';
import { createLearnerRecords } from '../store/learners/told-records.js';
import { createWaitingAttempts } from '../store/outbox/waiting-attempts.js';
import { createErasureWarehouse } from '../warehouse/maintenance/erasure-warehouse.js';
import {
  type AttemptRange,
  createStoredAttempts,
  createStoredHistories,
} from '../warehouse/reads/stored-attempts.js';
import { createLearnerTables } from '../warehouse/reads/told-rows.js';
import { type Engine, whileUsable } from './engine.js';

interface LearnerDataPorts {
  readonly attempts: AttemptPorts;
  readonly takeBack: TakeBackPorts;
  readonly erasures: ErasurePorts;
  readonly exportLearner: ExportLearner;
}

const refusal = 'Too many read what is stored at the same time; try again later';
/**
 * Six of the client's eight connections: what is written needs one, and exports have another. A crowd of one tenant's would
 * take all of them, and hold up what other tenants send and ask: half are the most that it gets, and who of it finds no
 * place is kept waiting for no longer than a page may take to build up.
 */
const readTurns: TurnRules = { atOnce: 6, ofTenant: 3, mostWaiting: 50, waitMs: 2000, refusal };
/** Exports are few, and each page of them gets its turn. */
const exportTurns: TurnRules = { atOnce: 1, ofTenant: 1, mostWaiting: 100, waitMs: 60_000, refusal };

/** Each of 20,000 answers takes a hundred megabytes; the one thread replays one while the next is read. */
const takeBackTurns: TurnRules = {
  atOnce: 2,
  ofTenant: 1,
  mostWaiting: 10,
  waitMs: 10_000,
  refusal: 'Too many answers are taken back; try again later',
};

/** For all reads of ClickHouse that a caller waits for. */
export const createReadTurns = (): Turns => createTurns(readTurns);

/** @param inTurn of `createReadTurns` */
export function learnerDataPorts(engine: Engine, inTurn: Turns): LearnerDataPorts {
  const { redis, clickhouse, partitions, learners, models, compute, blocked } = engine;
  const waiting = createWaitingAttempts(redis, partitions);
  const stored = createStoredAttempts(clickhouse);
  const histories = createStoredHistories(clickhouse);
  const receipts = createErasureWarehouse(clickhouse);
  const inExport = createTurns(exportTurns);
  const records = createLearnerRecords(redis, partitions);
  const exportLearner = createLearnerExports({
    records: {
      ...records,
      state: (tenant, userId) => whileUsable(blocked, () => records.state(tenant, userId)),
    },
    waiting,
    stored: { read: (range) => inExport(range.tenant, () => stored.read(range)) },
    tables: createLearnerTables(clickhouse, inExport),
    now: Date.now,
  });
  const erasures = {
    erasures: createErasureStore(redis, partitions),
    receipts: { find: (tenant: string, id: string) => inTurn(tenant, () => receipts.find(tenant, id)) },
  };
  const takeBack = {
    learners,
    models,
    now: Date.now,
    waiting,
    histories: {
      read: (tenant: string, userId: string, to: number) =>
        inTurn(tenant, () => histories.read(tenant, userId, to)),
    },
    rewriter: compute,
    inTurn: createTurns(takeBackTurns),
  };
  const attempts = {
    learners,
    waiting,
    stored: { read: (range: AttemptRange) => inTurn(range.tenant, () => stored.read(range)) },
  };
  return { attempts, takeBack, erasures, exportLearner };
}
