/** What is left in ClickHouse of learners' histories that erasures have ended. */
import type { ClickHouseClient } from '@clickhouse/client';
import { clockMs } from '../../contracts/corrections.js';
import { learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { CorrectedRows } from '../../services/corrections/correction-ports.js';
import { selectRows } from '../clickhouse/client.js';
import { quote } from '../clickhouse/table.js';
import { type LearnerTable, learnerTables, ofLearner } from '../schema/learner-tables.js';

interface Learner {
  readonly tenant: string;
  readonly user_id: string;
}

/** Where the history ended: the parameters of the proving query. */
export const endedHistory = (rows: CorrectedRows) => ({
  tenant: rows.tenant,
  user_id: rows.userId,
  partition: rows.partition,
  below_ms: rows.below.ms,
  below_seq: rows.below.seq,
  goal_until: rows.goalAt,
  until: rows.below.ms + clockMs,
});

const countOne = ({ table, ended, endedSums }: LearnerTable): string =>
  endedSums === undefined
    ? `SELECT count() FROM ${table.name} WHERE ${ended}`
    : `SELECT abs(sum(n)) FROM (${endedSums})`;

/** One row a table: what is left of the history. All zeros prove that it is erased. */
export const provingQuery: string = learnerTables
  .map(
    (one) => `SELECT '${one.table.name}' AS place, toUInt64(assumeNotNull((${countOne(one)}))) AS remaining`,
  )
  .join('\nUNION ALL ');

/** Rows of a table, or what its sums count, by learner. */
const countEach = ({ table, ended, endedSums }: LearnerTable): string =>
  `SELECT '${table.name}' AS place, ${learnerNameSql} AS name, ${
    endedSums === undefined
      ? `toUInt64(count()) AS remaining FROM ${table.name} WHERE ${ended}`
      : `toUInt64(abs(sum(n))) AS remaining FROM (${endedSums})`
  } GROUP BY name`;

const countsEach = learnerTables.map(countEach).join('\nUNION ALL ');

/** @returns what is left of each one's history, by place; in their order */
export async function countEnded(
  client: ClickHouseClient,
  rows: readonly CorrectedRows[],
  signal?: AbortSignal,
): Promise<Record<string, number>[]> {
  const histories = rows.map(endedHistory);
  const counts = new Map(histories.map((one) => [nameOf(one), { ...nothing }]));
  const found = await selectRows<{ place: string; name: string; remaining: string }>(
    client,
    ofEach(countsEach, histories),
    signal,
  );
  for (const { place, name, remaining } of found) {
    const count = counts.get(name);
    if (count !== undefined) count[place] = Number(remaining);
  }
  return [...counts.values()];
}

const nothing: Readonly<Record<string, number>> = Object.fromEntries(
  learnerTables.map(({ table }) => [table.name, 0]),
);

const nameOf = ({ tenant, user_id }: Learner): string => learnerName(tenant, user_id);

/**
 * SQL of one learner as SQL of many: `ofLearner` becomes a list, and a parameter what belongs to the row's learner. Whose
 * a row is, is looked up by its name (`transform`), so that many cost little more than one.
 *
 * @param histories each learner once
 */
export function ofEach(
  sql: string,
  histories: readonly (Learner & Readonly<Record<string, string | number>>)[],
): string {
  const names = histories.map((one) => quote(nameOf(one))).join();
  const ofRow = (_: string, parameter: string, type: string): string => {
    const values = histories.map((one) => one[parameter]).join();
    return `to${type}(transform(${learnerNameSql}, [${names}], [${values}], 0))`;
  };
  // Not in what was put in already: a name may look like a parameter, or have `$&`.
  const parts = sql.split(ofLearner).map((part) => part.replaceAll(/\{(\w+):(\w+)\}/g, ofRow));
  return parts.join(isOneOf(histories));
}

/** @param alias of the table, with its dot */
export const isOneOf = (learners: readonly Learner[], alias: '' | 'a.' = ''): string =>
  `(${alias}tenant, ${alias}user_id) IN (${learners.map((one) => `(${quote(one.tenant)}, ${quote(one.user_id)})`).join()})`;
