/** Erasures in ClickHouse: the rows that came over the journal, the proof and the receipt. */
import type { ClickHouseClient } from '@clickhouse/client';
import { learnerHashSql } from '../../contracts/learner-name.js';
import type { ErasureReceipt, ErasureWarehouse } from '../../services/corrections/erasure-ports.js';
import { callersTime, selectRows, sqlTime } from '../clickhouse/client.js';
import { type Cluster, deleteFrom } from '../clickhouse/cluster.js';
import { complete } from '../ingest/repair.js';
import { countEnded, endedHistory, ofEach, provingQuery } from '../reads/ended-history.js';
import { attempts } from '../schema/attempts.js';
import { erasures } from '../schema/correction-tables.js';
import { learnerTables } from '../schema/learner-tables.js';
import { learnerSkillDays } from '../schema/rollups.js';
import { applyDeletedMasks } from './deleted-masks.js';

/** What the correction itself has taken away, in order with the outbox. */
const byCorrection = new Set([attempts.name, learnerSkillDays.name]);
const late = learnerTables.filter(({ table }) => !byCorrection.has(table.name));

export function createErasureWarehouse(client: ClickHouseClient, cluster: Cluster = null): ErasureWarehouse {
  return {
    removeLate: async (rows) => {
      for (const { table } of late) await complete(client, table.name, cluster);
      const left = await countEnded(client, rows);
      for (const { table, ended } of late) {
        const there = rows.filter((_, i) => (left[i]?.[table.name] ?? 0) > 0).map(endedHistory);
        if (there.length === 0) continue;
        const query = `${deleteFrom(table.name, cluster)} WHERE ${ofEach(ended, there)}`;
        await client.command({ query });
      }
    },
    findAgain: (ended) => {
      const tenants = [...new Set(ended.map(({ tenant }) => tenant))];
      const hashes = ended.map(({ hash }) => hash);
      return selectRows(client, findAgainQuery, undefined, { tenants, hashes });
    },
    prove: (rows) => countEnded(client, rows),
    purge: async () => {
      await applyDeletedMasks(client, cluster);
    },
    proofOf: (rows) => {
      const { user_id: _, ...parameters } = endedHistory(rows);
      return { query: provingQuery, parameters };
    },
    keep: async (receipts) => {
      await client.insert({
        table: erasures.name,
        format: 'JSONEachRow',
        values: receipts.map(rowOf),
        clickhouse_settings: { async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 },
      });
    },
    find: async (tenant, id) => {
      const query = `SELECT receipt FROM ${erasures.name} WHERE tenant = {tenant:String} AND erasure_id = {id:String} LIMIT 1`;
      const [found] = await selectRows<{ receipt: string }>(client, query, callersTime(), {
        tenant,
        id,
      });
      return found === undefined ? null : (JSON.parse(found.receipt) as ErasureReceipt);
    },
  };
}

/** The hash is made once a learner, and not for each row. */
const findAgainQuery = `SELECT DISTINCT ${learnerHashSql} AS hash, user_id AS userId FROM (
${late.map(({ table }) => `  SELECT DISTINCT tenant, user_id FROM ${table.name} WHERE tenant IN {tenants:Array(String)}`).join('\n  UNION ALL\n')}
) WHERE hash IN {hashes:Array(String)} SETTINGS max_threads = 1`;

const rowOf = (receipt: ErasureReceipt): object => ({
  tenant: receipt.tenant,
  erasure_id: receipt.id,
  requested_at: sqlTime(receipt.requestedAt),
  done_at: sqlTime(receipt.doneAt),
  receipt: JSON.stringify(receipt),
});
