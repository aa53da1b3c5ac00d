import type { ClickHouseClient } from '@clickhouse/client';
import {
  type CorrectedRows,
  type Counts,
  maxClockSkewMs,
  type RemovalCounts,
} from '../../contracts/corrections.js';
import { learnerHashSql, learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { ListedErasure } from '../../contracts/responses/erasures.js';
import { distinct } from '../../lists.js';
import { callersTime, runStatement, selectRows, sqlTime, syncReplicas } from '../clickhouse/client.js';
import { type Cluster, deleteFrom, quote } from '../clickhouse/ddl.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { type RollupPart, repairPart } from '../ingest/repair.js';
import type { TenantRead } from '../reads/tenant-read.js';
import { attempts, countedRows, learnerSnapshots } from '../schema/attempt-tables.js';
import { erasures } from '../schema/deployment-tables.js';
import { before, type LearnerTable, learnerTables, ofLearner } from '../schema/learner-tables.js';
import {
  archivedDays,
  archivedLearnerSkill,
  isArchived,
  keptRows,
  learnerSums,
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

const archive = learnerTables.filter(({ table }) => [archivedLearnerSkill, learnerSnapshots].includes(table));
const late = learnerTables.filter(({ table }) => ![attempts, learnerSums.table].includes(table));

export type CorrectionWarehouse = ReturnType<typeof createCorrectionWarehouse>;

export function createCorrectionWarehouse(client: ClickHouseClient, cluster: Cluster = null) {
  const deleteRows = (table: string, condition: string, signal?: AbortSignal) =>
    runStatement(client, `${deleteFrom(table, cluster)} WHERE ${condition}`, { signal });

  /** Counts first: a DELETE costs more, and rows are rare. */
  async function removeEnded(
    tables: readonly LearnerTable[],
    rows: readonly CorrectedRows[],
    signal?: AbortSignal,
  ): Promise<void> {
    if (rows.length === 0) return;
    for (const { table } of tables) await syncReplicas(client, table.name, cluster, signal);
    const left = await countEnded(client, tables, rows, signal);
    for (const { table, ended } of tables) {
      const there = rows.filter((_, i) => (left[i]?.[table.name] ?? 0) > 0);
      if (there.length > 0) await deleteRows(table.name, ofEach(ended, there), signal);
    }
  }

  return {
    /** Results have the order of `rows`. */
    count: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<RemovalCounts[]> => {
      await syncReplicas(client, attempts.name, cluster, signal);
      const query = countByDay(rows);
      const found = await selectRows<{ name: string; day: number; answers: number }>(client, query, {
        signal,
      });
      const answers = byLearner(rows, found, {}, (row) => [row.day, row.answers]);
      const places = await countEnded(client, learnerTables, rows, signal);
      return rows.map((_, i) => ({ answers: answers[i] ?? {}, before: places[i] ?? {} }));
    },
    /** The caller must lock the partitions. Every step can be repeated. */
    remove: async (rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<void> => {
      await syncReplicas(client, attempts.name, cluster, signal);
      await deleteRows(attempts.name, correctedRows(rows), signal);
      const erased = rows.filter(({ fromSeq }) => fromSeq === 0);
      await removeEnded(archive, erased, signal);
      // Repair these sums last: after a kill, they show the next run which days are affected.
      await repairPart({ client, cluster, signal }, skillDays, touchedDays(rows));
      await repairPart({ client, cluster, signal }, learnerSums, wholeLearners(rows));
    },
    removeLate: (rows: readonly CorrectedRows[]): Promise<void> => removeEnded(late, rows),
    /** Also finds learners who started a new history. */
    findAgain: (erased: readonly { readonly tenant: string; readonly hash: string }[]) => {
      const tenants = distinct(erased.map(({ tenant }) => tenant));
      const params = { tenants, hashes: erased.map(({ hash }) => hash) };
      return selectRows<{ hash: string; userId: string }>(client, findAgainQuery, { params });
    },
    prove: (rows: readonly CorrectedRows[]): Promise<Counts[]> => countEnded(client, learnerTables, rows),
    proofOf: (rows: CorrectedRows): ErasureProof => ({ query: provingQuery, parameters: parametersOf(rows) }),
    keep: async (receipts: readonly ErasureReceipt[]): Promise<void> => {
      const rows = receipts.map((receipt) => ({
        tenant: receipt.tenant,
        erasure_id: receipt.id,
        requested_at: sqlTime(receipt.requestedAt),
        done_at: sqlTime(receipt.doneAt),
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

/** Null: the erasure is unknown or not done. */
export async function findReceipt(
  client: ClickHouseClient,
  tenant: string,
  id: string,
): Promise<ErasureReceipt | null> {
  const query = `SELECT receipt FROM ${erasures.name} WHERE tenant = {tenant:String} AND erasure_id = {id:String} LIMIT 1`;
  const options = { params: { tenant, id }, signal: callersTime() };
  const [found] = await selectRows<{ receipt: string }>(client, query, options);
  return found === undefined ? null : JSON.parse(found.receipt);
}

/** Newest first. @param after `requested_at` (RFC 3339), a space and `erasure_id` of the last one */
export function listReceipts(read: TenantRead, tenant: string, after: string | null, atMost: number) {
  const [requestedAt = '', id = ''] = after?.split(' ') ?? [];
  const at = after === null ? Number.MAX_SAFE_INTEGER : Date.parse(requestedAt);
  return read<ListedErasure>(receiptsQuery, tenant, { at, id, atMost });
}

const receiptsQuery = `SELECT erasure_id, 'done' AS status, requested_at, max(e.done_at) AS done_at
FROM ${erasures.name} AS e
WHERE tenant = {tenant:String} AND (toUnixTimestamp64Milli(requested_at), erasure_id) < ({at:Int64}, {id:String})
GROUP BY erasure_id, requested_at ORDER BY requested_at DESC, erasure_id DESC LIMIT {atMost:UInt32}`;

const correctedRows = (rows: readonly CorrectedRows[]): string =>
  ofEach(`${ofLearner} AND learner_seq >= {from_seq:UInt32} AND ${before}`, rows);

const countByDay = (rows: readonly CorrectedRows[]): string => `SELECT ${learnerNameSql} AS name,
  toInt32(intDiv(toUnixTimestamp64Milli(received_at), 86400000)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${correctedRows(rows)} AND ${countedRows} GROUP BY name, day`;

const wholeLearners = (rows: readonly CorrectedRows[]): RollupPart => ({
  ...{ inAttempts: isOneOf(rows), inArchive: isOneOf(rows, 'a.'), inRollup: isOneOf(rows) },
});

const touched = `(SELECT DISTINCT tenant, skill_id, day, {partition:UInt16} FROM (
  SELECT tenant, user_id, skill_id, toDate(occurred_at) AS day, toInt64(1) AS n FROM attempts
    WHERE ${keptRows} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, toInt64(a.attempts) AS n FROM ${archivedDays}
    WHERE ${isArchived} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, -toInt64(r.attempts) AS n FROM ${learnerSums.table.name} AS r
    WHERE ${ofLearner} AND kind = 'day'
) GROUP BY tenant, user_id, skill_id, day HAVING sum(n) != 0)`;

function touchedDays(rows: readonly CorrectedRows[]): RollupPart {
  const days = ofEach(touched, rows);
  const tenants = distinct(rows.map(({ tenant }) => quote(tenant))).join();
  const partitions = distinct(rows.map(({ partition }) => partition)).join();
  const isTouched = (alias: '' | 'a.', day: string): string =>
    `${alias}tenant IN (${tenants}) AND ${alias}partition_id IN (${partitions})` +
    ` AND (${alias}tenant, ${alias}skill_id, ${day}, ${alias}partition_id) IN ${days}`;
  return {
    inAttempts: isTouched('', 'toDate(occurred_at)'),
    inArchive: isTouched('a.', 'a.day'),
    inRollup: isTouched('', 'day'),
    onlyWhereWrong: true,
  };
}

const findAgainQuery = `SELECT DISTINCT ${learnerHashSql} AS hash, user_id AS userId FROM (
${late.map(({ table }) => `  SELECT DISTINCT tenant, user_id FROM ${table.name} WHERE tenant IN {tenants:Array(String)}`).join('\n  UNION ALL\n')}
) WHERE hash IN {hashes:Array(String)} SETTINGS max_threads = 1`;

const selectMasked = `SELECT DISTINCT table AS name FROM system.parts
WHERE database = currentDatabase() AND active AND has_lightweight_delete ORDER BY name`;

const parametersOf = ({ tenant, partition, below, goalAt }: CorrectedRows) => ({
  ...{ tenant, partition, below_ms: below.ms, below_seq: below.seq },
  ...{ goal_until: goalAt, until: below.ms + maxClockSkewMs },
});

const sumOfTimes = (times: number): string => `toUInt64(intDiv(abs(sum(n)) + ${times - 1}, ${times}))`;

/** Zeros prove the erasure. */
const provingQuery: string = learnerTables
  .map(({ table, ended, endedSums }) => {
    const count =
      endedSums === undefined
        ? `SELECT count() FROM ${table.name} WHERE ${ended}`
        : `SELECT ${sumOfTimes(endedSums.times)} FROM (${endedSums.query})`;
    return `SELECT '${table.name}' AS place, toUInt64(assumeNotNull((${count}))) AS remaining`;
  })
  .join('\nUNION ALL ');

const countEach = ({ table, ended, endedSums }: LearnerTable): string =>
  `SELECT '${table.name}' AS place, ${learnerNameSql} AS name, ${
    endedSums === undefined
      ? `toUInt64(count()) AS remaining FROM ${table.name} WHERE ${ended}`
      : `${sumOfTimes(endedSums.times)} AS remaining FROM (${endedSums.query})`
  } GROUP BY name`;

async function countEnded(
  client: ClickHouseClient,
  tables: readonly LearnerTable[],
  rows: readonly CorrectedRows[],
  signal?: AbortSignal,
): Promise<Counts[]> {
  const query = ofEach(tables.map(countEach).join('\nUNION ALL '), rows);
  const found = await selectRows<{ place: string; name: string; remaining: string }>(client, query, {
    signal,
  });
  const none = Object.fromEntries(tables.map(({ table }) => [table.name, 0]));
  return byLearner(rows, found, none, ({ place, remaining }) => [place, Number(remaining)]);
}

function byLearner<Row extends { readonly name: string }>(
  rows: readonly CorrectedRows[],
  found: readonly Row[],
  none: Counts,
  entryOf: (row: Row) => readonly [key: string | number, n: number],
): Counts[] {
  const counts = new Map(rows.map((one) => [nameOf(one), { ...none }]));
  for (const row of found) {
    const [key, n] = entryOf(row);
    const own = counts.get(row.name);
    if (own !== undefined) own[key] = n;
  }
  return [...counts.values()];
}

const nameOf = ({ tenant, userId }: CorrectedRows): string => learnerName(tenant, userId);

/**
 * Turns SQL for one learner into SQL for many: `learnerCondition` becomes a list, and a parameter a lookup by
 * the learner's name.
 */
function ofEach(sql: string, rows: readonly CorrectedRows[]): string {
  const names = rows.map((one) => quote(nameOf(one))).join();
  const parameters = rows.map(
    (one) => new Map(Object.entries({ ...parametersOf(one), from_seq: one.fromSeq })),
  );
  const ofRow = (_: string, parameter: string, type: string): string => {
    const values = parameters.map((one) => one.get(parameter)).join();
    return `to${type}(transform(${learnerNameSql}, [${names}], [${values}], 0))`;
  };
  // Replace parameters first: a name may look like a parameter or contain `$&`.
  const parts = sql.split(ofLearner).map((part) => part.replaceAll(/\{(\w+):(\w+)\}/g, ofRow));
  return parts.join(isOneOf(rows));
}

const isOneOf = (rows: readonly CorrectedRows[], alias: '' | 'a.' = ''): string =>
  `(${alias}tenant, ${alias}user_id) IN (${rows.map((one) => `(${quote(one.tenant)}, ${quote(one.userId)})`).join()})`;
