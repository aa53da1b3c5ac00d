/** Corrections over the engine's connections. */
import { createCorrections } from '../services/corrections/apply-corrections.js';
import { createErasureFinisher } from '../services/corrections/finish-erasures.js';
import { createCorrectionStore } from '../store/corrections/corrections.js';
import { createErasureStore } from '../store/corrections/erasures.js';
import { reportOnce } from '../store/redis/recent.js';
import { createCorrectionWarehouse } from '../warehouse/maintenance/correction-warehouse.js';
import type { Engine } from './engine.js';

/** For the drain. */
export const correctionsOf = ({ redis, clickhouse, endpoints, logger }: Engine) =>
  createCorrections({
    store: createCorrectionStore(redis),
    warehouse: createCorrectionWarehouse(clickhouse, endpoints.clickhouseCluster),
    logger,
  });

const unreadableErasure = 'an erasure cannot be read: it stays open, the others go on';

/** For the journal's drain and what runs behind it. */
export function journalErasures({ redis, clickhouse, partitions, endpoints, logger }: Engine) {
  // The runs come every second.
  const report = reportOnce(
    (error, erasure) => logger.error({ err: error, erasure }, unreadableErasure),
    1000,
  );
  const store = createErasureStore(redis, partitions, report);
  const warehouse = createCorrectionWarehouse(clickhouse, endpoints.clickhouseCluster);
  return {
    late: store.lateAmong,
    finish: createErasureFinisher({ store, warehouse, logger, now: Date.now }),
  };
}
