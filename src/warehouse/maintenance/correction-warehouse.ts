import type { ClickHouseClient } from '@clickhouse/client';
import {
  type CorrectedRows,
  type Counts,
  maxClockSkewMs,
  type RemovalCounts,
} from '../../contracts/corrections/corrections.js';
import { learnerHashSql, learnerName, learnerNameSql } from '../../contracts/learners/learner-name.js';
import { distinct } from '../../lists.js';
import { formatSqlTime, runStatement, selectRows, syncReplicas } from '../clickhouse/client.js';
import { buildDeleteFrom, type ClusterName, quote } from '../clickhouse/ddl.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { type RollupPart, repairPart } from '../ingest/repair.js';
import {
  attempts,
  countedCondition,
  learnerSnapshots,
  replacedAttempts,
  storedColumnNames,
  summedAnswers,
} from '../schema/attempt-tables.js';
import { erasures } from '../schema/deployment-tables.js';
import {
  belowCondition,
  type LearnerTable,
  learnerCondition,
  learnerTables,
} from '../schema/learner-tables.js';
import {
  archivedCondition,
  archivedLearnerSkill,
  archiveSource,
  learnerSums,
  retainedCondition,
  skillDays,
} from '../schema/rollups.js';

export interface ErasureReceipt {
  readonly id: string;
  readonly tenant: string;
  /** Unix milliseconds. */
  readonly requestedAt: number;
  readonly doneAt: number;
  readonly removed: { readonly records: number; readonly items: number };
  readonly before: Counts;
  readonly after: Counts;
  readonly proof: ErasureProof;
}

export interface ErasureProof {
  readonly query: string;
  /** Without the learner's id: only the caller knows it. */
  readonly parameters: Readonly<Record<string, string | number>>;
}

const archiveTables = learnerTables.filter(({ table }) =>
  [archivedLearnerSkill, learnerSnapshots].includes(table),
);
/** Tables that the drain does not write: an erased learner's rows may arrive there later. */
const lateTables = learnerTables.filter(({ table }) => ![attempts, learnerSums.table].includes(table));

export type CorrectionWarehouse = ReturnType<typeof createCorrectionWarehouse>;

export function createCorrectionWarehouse(client: ClickHouseClient, cluster: ClusterName = null) {
  const deleteRows = (table: string, condition: string, signal?: AbortSignal) =>
    runStatement(client, `${buildDeleteFrom(table, cluster)} WHERE ${condition}`, { signal });

  /** Counts first: a DELETE costs more, and rows are rare. */
  async function removeEnded(
    tables: readonly LearnerTable[],
    rows: readonly CorrectedRows[],
    signal?: AbortSignal,
  ): Promise<void> {
    if (rows.length === 0) return;
    for (const { table } of tables) await syncReplicas(client, table.name, cluster, signal);
    const remaining = await countEndedRows(client, tables, rows, signal);
    for (const { table, endedCondition } of tables) {
      const present = rows.filter((_, i) => (remaining[i]?.[table.name] ?? 0) > 0);
      if (present.length > 0) await deleteRows(table.name, expandToLearners(endedCondition, present), signal);
    }
  }

  return {
    /** Results have the order of `rows`. */
    countRemovals: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<RemovalCounts[]> => {
      await syncReplicas(client, attempts.name, cluster, signal);
      const query = buildDayCount(rows);
      const found = await selectRows<{ name: string; day: number; answers: number }>(client, query, {
        signal,
      });
      const answers = groupByLearner(rows, found, {}, (row) => [row.day, row.answers]);
      const remaining = await countEndedRows(client, learnerTables, rows, signal);
      return rows.map((_, i) => ({ answers: answers[i] ?? {}, before: remaining[i] ?? {} }));
    },
    /** The caller must lock the partitions. Every step can be repeated. */
    remove: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<void> => {
      await syncReplicas(client, attempts.name, cluster, signal);
      const kept = rows.filter(({ keepsAnswers }) => keepsAnswers);
      if (kept.length > 0) await runStatement(client, buildCopy(kept), { signal });
      await deleteRows(attempts.name, buildCorrectedCondition(rows), signal);
      const erased = rows.filter(({ fromSeq }) => fromSeq === 0);
      await removeEnded(archiveTables, erased, signal);
      // Repair these sums last: after a kill, they show the next run which days are affected.
      await repairPart({ client, cluster, signal }, skillDays, buildDaysPart(rows));
      await repairPart({ client, cluster, signal }, learnerSums, buildLearnersPart(rows));
    },
    /** Call it when the rewritten rows of the tenant are stored. */
    dropCopies: (tenant: string) => deleteRows(replacedAttempts.name, `tenant = ${quote(tenant)}`),
    removeLateRows: (rows: readonly CorrectedRows[]): Promise<void> => removeEnded(lateTables, rows),
    /** Also finds learners who started a new history. */
    findErasedLearners: (erased: readonly { readonly tenant: string; readonly hash: string }[]) => {
      const tenants = distinct(erased.map(({ tenant }) => tenant));
      const params = { tenants, hashes: erased.map(({ hash }) => hash) };
      return selectRows<{ hash: string; userId: string }>(client, erasedLearnersQuery, { params });
    },
    countRemaining: (rows: readonly CorrectedRows[]): Promise<Counts[]> =>
      countEndedRows(client, learnerTables, rows),
    buildProof: (rows: CorrectedRows): ErasureProof => ({
      query: provingQuery,
      parameters: buildParameters(rows),
    }),
    saveReceipts: async (receipts: readonly ErasureReceipt[]): Promise<void> => {
      const rows = receipts.map((receipt) => ({
        tenant: receipt.tenant,
        erasure_id: receipt.id,
        requested_at: formatSqlTime(receipt.requestedAt),
        done_at: formatSqlTime(receipt.doneAt),
        receipt: JSON.stringify(receipt),
      }));
      await insertObjects(client, erasures.name, rows, { insert_deduplicate: 0 });
    },
    /**
     * Starts to rewrite parts in which deleted rows are only masked. On a cluster, ALTER DELETE leaves no
     * such parts.
     */
    purge: async (): Promise<string[]> => {
      if (cluster !== null) return [];
      const masked = await selectRows<{ name: string }>(client, selectMasked);
      for (const { name } of masked)
        await runStatement(client, `ALTER TABLE ${name} APPLY DELETED MASK`, {
          settings: { mutations_sync: '0' },
        });
      return masked.map(({ name }) => name);
    },
  };
}

const buildCorrectedCondition = (rows: readonly CorrectedRows[]): string =>
  expandToLearners(`${learnerCondition} AND learner_seq >= {from_seq:UInt32} AND ${belowCondition}`, rows);

const buildCopy = (rows: readonly CorrectedRows[]): string =>
  `INSERT INTO ${replacedAttempts.name} (${storedColumnNames})
  SELECT ${storedColumnNames} FROM attempts WHERE ${buildCorrectedCondition(rows)} SETTINGS insert_deduplicate = 0`;

const buildDayCount = (rows: readonly CorrectedRows[]): string => `SELECT ${learnerNameSql} AS name,
  toInt32(intDiv(toUnixTimestamp64Milli(received_at), 86400000)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${buildCorrectedCondition(rows)} AND ${countedCondition} GROUP BY name, day`;

const buildLearnersPart = (rows: readonly CorrectedRows[]): RollupPart => ({
  ...{
    attemptsCondition: buildLearnerFilter(rows),
    archiveCondition: buildLearnerFilter(rows, 'a.'),
    rollupCondition: buildLearnerFilter(rows),
  },
});

/** Days of skills on which the learner's sums differ from the rows. */
const touchedDaysQuery = `(SELECT DISTINCT tenant, skill_id, day, {partition:UInt16} FROM (
  SELECT tenant, user_id, skill_id, local_date AS day, toInt64(1) AS n FROM ${summedAnswers}
    WHERE ${retainedCondition} AND ${learnerCondition}
  UNION ALL SELECT tenant, user_id, skill_id, day, toInt64(a.attempts) AS n FROM ${archiveSource}
    WHERE ${archivedCondition} AND ${learnerCondition}
  UNION ALL SELECT tenant, user_id, skill_id, day, -toInt64(r.attempts) AS n FROM ${learnerSums.table.name} AS r
    WHERE ${learnerCondition} AND kind = 'day'
) GROUP BY tenant, user_id, skill_id, day HAVING sum(n) != 0)`;

function buildDaysPart(rows: readonly CorrectedRows[]): RollupPart {
  const days = expandToLearners(touchedDaysQuery, rows);
  const tenants = distinct(rows.map(({ tenant }) => quote(tenant))).join();
  const partitions = distinct(rows.map(({ partition }) => partition)).join();
  const buildCondition = (alias: '' | 'a.', day: string): string =>
    `${alias}tenant IN (${tenants}) AND ${alias}partition_id IN (${partitions})` +
    ` AND (${alias}tenant, ${alias}skill_id, ${day}, ${alias}partition_id) IN ${days}`;
  return {
    attemptsCondition: buildCondition('', 'local_date'),
    archiveCondition: buildCondition('a.', 'a.day'),
    rollupCondition: buildCondition('', 'day'),
    selectsOnlyDifferences: true,
  };
}

const erasedLearnersQuery = `SELECT DISTINCT ${learnerHashSql} AS hash, user_id AS userId FROM (
${lateTables.map(({ table }) => `  SELECT DISTINCT tenant, user_id FROM ${table.name} WHERE tenant IN {tenants:Array(String)}`).join('\n  UNION ALL\n')}
) WHERE hash IN {hashes:Array(String)} SETTINGS max_threads = 1`;

const selectMasked = `SELECT DISTINCT table AS name FROM system.parts
WHERE database = currentDatabase() AND active AND has_lightweight_delete ORDER BY name`;

const buildParameters = ({ tenant, partition, below, goalAt }: CorrectedRows) => ({
  ...{ tenant, partition, below_ms: below.ms, below_seq: below.seq },
  ...{ goal_until: goalAt, until: below.ms + maxClockSkewMs },
});

const divideSum = (divisor: number): string => `toUInt64(intDiv(abs(sum(n)) + ${divisor - 1}, ${divisor}))`;

/** Zeros prove the erasure. */
const provingQuery: string = learnerTables
  .map(({ table, endedCondition, endedSums }) => {
    const count =
      endedSums === undefined
        ? `SELECT count() FROM ${table.name} WHERE ${endedCondition}`
        : `SELECT ${divideSum(endedSums.countsPerAnswer)} FROM (${endedSums.query})`;
    return `SELECT '${table.name}' AS place, toUInt64(assumeNotNull((${count}))) AS remaining`;
  })
  .join('\nUNION ALL ');

const buildCount = ({ table, endedCondition, endedSums }: LearnerTable): string =>
  `SELECT '${table.name}' AS place, ${learnerNameSql} AS name, ${
    endedSums === undefined
      ? `toUInt64(count()) AS remaining FROM ${table.name} WHERE ${endedCondition}`
      : `${divideSum(endedSums.countsPerAnswer)} AS remaining FROM (${endedSums.query})`
  } GROUP BY name`;

async function countEndedRows(
  client: ClickHouseClient,
  tables: readonly LearnerTable[],
  rows: readonly CorrectedRows[],
  signal?: AbortSignal,
): Promise<Counts[]> {
  const query = expandToLearners(tables.map(buildCount).join('\nUNION ALL '), rows);
  const found = await selectRows<{ place: string; name: string; remaining: string }>(client, query, {
    signal,
  });
  const zeroCounts = Object.fromEntries(tables.map(({ table }) => [table.name, 0]));
  return groupByLearner(rows, found, zeroCounts, ({ place, remaining }) => [place, Number(remaining)]);
}

function groupByLearner<Row extends { readonly name: string }>(
  rows: readonly CorrectedRows[],
  found: readonly Row[],
  zeroCounts: Counts,
  toEntry: (row: Row) => readonly [key: string | number, n: number],
): Counts[] {
  const counts = new Map(rows.map((one) => [toLearnerName(one), { ...zeroCounts }]));
  for (const row of found) {
    const [key, n] = toEntry(row);
    const learnerCounts = counts.get(row.name);
    if (learnerCounts !== undefined) learnerCounts[key] = n;
  }
  return [...counts.values()];
}

const toLearnerName = ({ tenant, userId }: CorrectedRows): string => learnerName(tenant, userId);

/**
 * Turns SQL for one learner into SQL for many: `learnerCondition` becomes a list, and a parameter a lookup by
 * the learner's name.
 */
function expandToLearners(sql: string, rows: readonly CorrectedRows[]): string {
  const names = rows.map((one) => quote(toLearnerName(one))).join();
  const parameters = rows.map(
    (one) => new Map(Object.entries({ ...buildParameters(one), from_seq: one.fromSeq })),
  );
  const toTransform = (_: string, parameter: string, type: string): string => {
    const values = parameters.map((one) => one.get(parameter)).join();
    return `to${type}(transform(${learnerNameSql}, [${names}], [${values}], 0))`;
  };
  // Replace parameters first: a name may look like a parameter or contain `$&`.
  const parts = sql.split(learnerCondition).map((part) => part.replaceAll(/\{(\w+):(\w+)\}/g, toTransform));
  return parts.join(buildLearnerFilter(rows));
}

const buildLearnerFilter = (rows: readonly CorrectedRows[], alias: '' | 'a.' = ''): string =>
  `(${alias}tenant, ${alias}user_id) IN (${rows.map((one) => `(${quote(one.tenant)}, ${quote(one.userId)})`).join()})`;
