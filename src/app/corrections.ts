/** What takes rows back out of ClickHouse, over the engine's connections. */
import type { Endpoints } from '../embedded/data-dir.js';
import { createCarryOut } from '../services/corrections/carry-out.js';
import { createErasureFinisher } from '../services/corrections/finish-erasures.js';
import type { CarryOut } from '../services/pipeline/drain-outbox.js';
import { createCorrectionStore } from '../store/corrections/corrections.js';
import { createEndedHistories } from '../store/corrections/ended-histories.js';
import { createErasureLeftovers } from '../store/corrections/erasure-leftovers.js';
import { createErasureStore } from '../store/corrections/erasures.js';
import { tellOnce } from '../store/redis/recent.js';
import type { Logger } from '../telemetry.js';
import { createCorrectionWarehouse } from '../warehouse/maintenance/correction-warehouse.js';
import { createErasureWarehouse } from '../warehouse/maintenance/erasure-warehouse.js';
import type { Engine } from './engine.js';

/** For the drain. */
export const carryOutOf = (
  { clickhouseCluster }: Endpoints,
  { redis, clickhouse }: Engine,
  logger: Logger,
): CarryOut =>
  createCarryOut({
    store: createCorrectionStore(redis),
    warehouse: createCorrectionWarehouse(clickhouse, clickhouseCluster),
    logger,
  });

const unreadableErasure = 'an erasure cannot be read: it stays open, the others go on';

/** For the journal's runs. */
export const erasureFinisherOf = (
  { clickhouseCluster }: Endpoints,
  { redis, clickhouse, partitions }: Engine,
  logger: Logger,
): ((signal: AbortSignal) => Promise<number>) =>
  createErasureFinisher({
    erasures: createErasureStore(
      redis,
      partitions,
      // The runs come every second.
      tellOnce((error, erasure) => logger.error({ err: error, erasure }, unreadableErasure), 1000),
    ),
    ended: createEndedHistories(redis, partitions),
    leftovers: createErasureLeftovers(redis, partitions),
    warehouse: createErasureWarehouse(clickhouse, clickhouseCluster),
    logger,
    now: Date.now,
  });
