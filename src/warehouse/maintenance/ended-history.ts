/** What is in ClickHouse of learners' histories that erasures end. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type CorrectedRows, type Counts, clockMs } from '../../contracts/corrections.js';
import { learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import { selectRows } from '../clickhouse/client.js';
import { quote } from '../clickhouse/table.js';
import { type LearnerTable, learnerTables, ofLearner } from '../schema/learner-tables.js';

/** Where the history ended: the parameters of the proving query, but for the learner. */
export const parametersOf = ({ tenant, partition, below, goalAt }: CorrectedRows) => ({
  ...{ tenant, partition, below_ms: below.ms, below_seq: below.seq },
  ...{ goal_until: goalAt, until: below.ms + clockMs },
});

/** One row a table: what is left of the history. All zeros prove that it is erased. */
export const provingQuery: string = learnerTables
  .map(({ table, ended, endedSums }) => {
    const count =
      endedSums === undefined
        ? `SELECT count() FROM ${table.name} WHERE ${ended}`
        : `SELECT abs(sum(n)) FROM (${endedSums})`;
    return `SELECT '${table.name}' AS place, toUInt64(assumeNotNull((${count}))) AS remaining`;
  })
  .join('\nUNION ALL ');

/** Rows of a table, or what its sums count, by learner. */
const countEach = ({ table, ended, endedSums }: LearnerTable): string =>
  `SELECT '${table.name}' AS place, ${learnerNameSql} AS name, ${
    endedSums === undefined
      ? `toUInt64(count()) AS remaining FROM ${table.name} WHERE ${ended}`
      : `toUInt64(abs(sum(n))) AS remaining FROM (${endedSums})`
  } GROUP BY name`;

/** @returns what is left of each one's history, by table; in their order */
export async function countEnded(
  client: ClickHouseClient,
  tables: readonly LearnerTable[],
  rows: readonly CorrectedRows[],
  signal?: AbortSignal,
): Promise<Counts[]> {
  const found = await selectRows<{ place: string; name: string; remaining: string }>(
    client,
    ofEach(tables.map(countEach).join('\nUNION ALL '), rows),
    signal,
  );
  const none = Object.fromEntries(tables.map(({ table }) => [table.name, 0]));
  return byLearner(rows, found, none, ({ place, remaining }) => [place, Number(remaining)]);
}

/** Numbers that were selected for each learner, by a key, in the order of the learners. */
export function byLearner<Row extends { readonly name: string }>(
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
 * SQL about one learner as SQL about many: `ofLearner` becomes a list, and a parameter the value of the row's learner. The
 * learner is looked up by name (`transform`), so that many cost little more than one.
 *
 * @param rows each learner once
 */
export function ofEach(sql: string, rows: readonly CorrectedRows[]): string {
  const names = rows.map((one) => quote(nameOf(one))).join();
  const parameters = rows.map(
    (one) => new Map(Object.entries({ ...parametersOf(one), from_seq: one.fromSeq })),
  );
  const ofRow = (_: string, parameter: string, type: string): string => {
    const values = parameters.map((one) => one.get(parameter)).join();
    return `to${type}(transform(${learnerNameSql}, [${names}], [${values}], 0))`;
  };
  // Not in what was put in already: a name may look like a parameter, or have `$&`.
  const parts = sql.split(ofLearner).map((part) => part.replaceAll(/\{(\w+):(\w+)\}/g, ofRow));
  return parts.join(isOneOf(rows));
}

/** @param alias of the table, with its dot */
export const isOneOf = (rows: readonly CorrectedRows[], alias: '' | 'a.' = ''): string =>
  `(${alias}tenant, ${alias}user_id) IN (${rows.map((one) => `(${quote(one.tenant)}, ${quote(one.userId)})`).join()})`;
