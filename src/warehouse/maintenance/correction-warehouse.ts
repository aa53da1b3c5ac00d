/** Takes rows of learners out of ClickHouse. A statement names many learners, each once. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { CorrectedRows, Counts, Removal } from '../../contracts/corrections.js';
import { learnerHashSql, learnerNameSql } from '../../contracts/learner-name.js';
import { callersTime, selectRows, sqlTime } from '../clickhouse/client.js';
import { type Cluster, deleteFrom } from '../clickhouse/cluster.js';
import { quote, type Table } from '../clickhouse/table.js';
import { complete, type RollupPart, repairPart } from '../ingest/repair.js';
import {
  archivedDays,
  archivedLearnerSkill,
  isArchived,
  keptRows,
  learnerSnapshots,
} from '../schema/archive.js';
import { attempts, countedRows } from '../schema/attempts.js';
import { before, type LearnerTable, learnerTables, ofLearner } from '../schema/learner-tables.js';
import { erasures } from '../schema/record-tables.js';
import { learnerSkill, learnerSkillDays, skillDays } from '../schema/rollups.js';
import { byLearner, countEnded, isOneOf, ofEach, parametersOf, provingQuery } from './ended-history.js';

/** What is kept of an erasure that is done: everything but whose it was. */
export interface ErasureReceipt {
  readonly id: string;
  readonly tenant: string;
  /** Unix milliseconds. */
  readonly requestedAt: number;
  readonly doneAt: number;
  readonly removed: { readonly records: number; readonly items: number };
  /** Rows by table. */
  readonly before: Counts;
  readonly after: Counts;
  readonly proof: ErasureProof;
}

export interface ErasureProof {
  /** One row a table: what is left there. */
  readonly query: string;
  /** Without the learner, whom only the caller knows. */
  readonly parameters: Readonly<Record<string, string | number>>;
}

const tablesOf = (tables: readonly Table[]): LearnerTable[] =>
  learnerTables.filter(({ table }) => tables.includes(table));

/** Sums and snapshots of answers whose rows were dropped for their age. */
const archive = tablesOf([archivedLearnerSkill, learnerSnapshots]);
/** Those that the drain does not write. */
const late = learnerTables.filter(
  ({ table }) => ![attempts.name, learnerSkillDays.name].includes(table.name),
);

export type CorrectionWarehouse = ReturnType<typeof createCorrectionWarehouse>;

export function createCorrectionWarehouse(client: ClickHouseClient, cluster: Cluster = null) {
  const deleteRows = (table: Table, condition: string, signal?: AbortSignal) =>
    client.command({
      query: `${deleteFrom(table.name, cluster)} WHERE ${condition}`,
      ...(signal && { abort_signal: signal }),
    });

  /** Deletes what is left of ended histories. A look first: it costs less than a deletion, and there is seldom anything. */
  async function removeEnded(
    tables: readonly LearnerTable[],
    rows: readonly CorrectedRows[],
    signal?: AbortSignal,
  ): Promise<void> {
    if (rows.length === 0) return;
    for (const { table } of tables) await complete(client, table.name, cluster, signal);
    const left = await countEnded(client, tables, rows, signal);
    for (const { table, ended } of tables) {
      const there = rows.filter((_, i) => (left[i]?.[table.name] ?? 0) > 0);
      if (there.length > 0) await deleteRows(table, ofEach(ended, there), signal);
    }
  }

  return {
    /** Answers of each one's rows by day of arrival, and rows of the history by table; in their order. */
    count: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<Removal[]> => {
      await complete(client, attempts.name, cluster, signal);
      const found = await selectRows<{ name: string; day: number; answers: number }>(
        client,
        `SELECT ${learnerNameSql} AS name,
  toInt32(intDiv(toUnixTimestamp64Milli(received_at), 86400000)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${correctedRows(rows)} AND ${countedRows} GROUP BY name, day`,
        signal,
      );
      const answers = byLearner(rows, found, {}, (row) => [row.day, row.answers]);
      const places = await countEnded(client, learnerTables, rows, signal);
      return rows.map((_, i) => ({ answers: answers[i] ?? {}, before: places[i] ?? {} }));
    },
    /**
     * Deletes the rows and makes the rollups agree with what is left. The caller holds the partitions: nobody else inserts
     * their rows meanwhile. May be repeated after any of its steps, also with other learners.
     */
    remove: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<void> => {
      await complete(client, attempts.name, cluster, signal);
      await deleteRows(attempts, correctedRows(rows), signal);
      await removeEnded(
        archive,
        rows.filter(({ fromSeq }) => fromSeq === 0),
        signal,
      );
      // The learners' own sums last: they say which days of the skills are touched, also to a run that goes on after a kill.
      await repairPart({ client, cluster, signal }, skillDays, touchedDays(rows));
      await repairPart({ client, cluster, signal }, learnerSkill, wholeLearners(rows));
    },
    /** Deletes what came from elsewhere than the outbox. */
    removeLate: (rows: readonly CorrectedRows[]): Promise<void> => removeEnded(late, rows),
    /** Which of the erased learners have rows, of whichever history, in the tables that `removeLate` deletes from. */
    findAgain: (erased: readonly { readonly tenant: string; readonly hash: string }[]) =>
      selectRows<{ hash: string; userId: string }>(client, findAgainQuery, undefined, {
        tenants: [...new Set(erased.map(({ tenant }) => tenant))],
        hashes: erased.map(({ hash }) => hash),
      }),
    /** Asks what the proving query asks. @returns what is left of each one's history, by table */
    prove: (rows: readonly CorrectedRows[]): Promise<Counts[]> => countEnded(client, learnerTables, rows),
    proofOf: (rows: CorrectedRows): ErasureProof => ({ query: provingQuery, parameters: parametersOf(rows) }),
    keep: async (receipts: readonly ErasureReceipt[]): Promise<void> => {
      await client.insert({
        table: erasures.name,
        format: 'JSONEachRow',
        values: receipts.map((receipt) => ({
          tenant: receipt.tenant,
          erasure_id: receipt.id,
          requested_at: sqlTime(receipt.requestedAt),
          done_at: sqlTime(receipt.doneAt),
          receipt: JSON.stringify(receipt),
        })),
        clickhouse_settings: { async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 },
      });
    },
    /** Null for an erasure that is not done, or not there. */
    find: async (tenant: string, id: string): Promise<ErasureReceipt | null> => {
      const query = `SELECT receipt FROM ${erasures.name} WHERE tenant = {tenant:String} AND erasure_id = {id:String} LIMIT 1`;
      const [found] = await selectRows<{ receipt: string }>(client, query, callersTime(), { tenant, id });
      return found === undefined ? null : JSON.parse(found.receipt);
    },
    /**
     * Begins to rewrite the parts that have masked rows. A deleted row is masked until its part is merged, which may be
     * never. On a cluster none are masked (cluster.ts).
     * @returns the tables
     */
    purge: async (): Promise<string[]> => {
      if (cluster !== null) return [];
      const masked = await selectRows<{ name: string }>(
        client,
        `SELECT DISTINCT table AS name FROM system.parts
WHERE database = currentDatabase() AND active AND has_lightweight_delete ORDER BY name`,
      );
      for (const { name } of masked)
        await client.command({
          query: `ALTER TABLE ${name} APPLY DELETED MASK`,
          clickhouse_settings: { mutations_sync: '0' },
        });
      return masked.map(({ name }) => name);
    },
  };
}

const correctedRows = (rows: readonly CorrectedRows[]): string =>
  ofEach(`${ofLearner} AND learner_seq >= {from_seq:UInt32} AND ${before}`, rows);

const wholeLearners = (rows: readonly CorrectedRows[]): RollupPart => ({
  ...{ inAttempts: isOneOf(rows), inArchive: isOneOf(rows, 'a.'), inRollup: isOneOf(rows) },
  onlyWhereWrong: false,
});

/** Days of skills, in the learner's partition, on which a learner's own sums are not those of the rows. */
const touched = `(SELECT DISTINCT tenant, skill_id, day, {partition:UInt16} FROM (
  SELECT tenant, user_id, skill_id, toDate(occurred_at) AS day, toInt64(1) AS n FROM attempts
    WHERE ${keptRows} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, toInt64(a.attempts) AS n FROM ${archivedDays}
    WHERE ${isArchived} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, -toInt64(r.attempts) AS n FROM ${learnerSkill.table.name} AS r
    WHERE ${ofLearner}
) GROUP BY tenant, user_id, skill_id, day HAVING sum(n) != 0)`;

function touchedDays(rows: readonly CorrectedRows[]): RollupPart {
  const days = ofEach(touched, rows);
  const tenants = [...new Set(rows.map(({ tenant }) => quote(tenant)))].join();
  const partitions = [...new Set(rows.map(({ partition }) => partition))].join();
  const place = (alias: '' | 'a.') =>
    `${alias}tenant IN (${tenants}) AND ${alias}partition_id IN (${partitions})`;
  return {
    inAttempts: `${place('')} AND (tenant, skill_id, toDate(occurred_at), partition_id) IN ${days}`,
    inArchive: `${place('a.')} AND (a.tenant, a.skill_id, a.day, a.partition_id) IN ${days}`,
    inRollup: `${place('')} AND (tenant, skill_id, day, partition_id) IN ${days}`,
    onlyWhereWrong: true,
  };
}

/** The hash is made once a learner, and not for each row. */
const findAgainQuery = `SELECT DISTINCT ${learnerHashSql} AS hash, user_id AS userId FROM (
${late.map(({ table }) => `  SELECT DISTINCT tenant, user_id FROM ${table.name} WHERE tenant IN {tenants:Array(String)}`).join('\n  UNION ALL\n')}
) WHERE hash IN {hashes:Array(String)} SETTINGS max_threads = 1`;
