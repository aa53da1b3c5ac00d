/** A table of sums that a materialized view maintains, and the SQL for its rows. */
import type { Column, Table, View } from '../clickhouse/ddl.js';

export type Expressions = Readonly<Record<string, string>>;
/** Sums that only rows of one level have, by the value of grouping(day) there. */
export type PartialSums = Readonly<Record<string, 0 | 1>>;

/** Rows of a rollup that count every answer once. */
export interface Level {
  /** Keys that name a row. */
  set: readonly string[];
  /** Condition on the rollup's rows. */
  where: string;
  /** View for analysts: finished figures, one row per key. */
  view: View;
}

export interface Rollup {
  table: Table;
  /** Columns that name a row, as expressions over `attempts`. */
  keys: Expressions;
  /** The other columns, as aggregates over `attempts`. */
  sums: Expressions;
  levels: readonly Level[];
  partial: PartialSums;
  /** Keys of the rows that are compared and repaired together. */
  unit: Expressions;
}

export const expressionsOf = (columns: readonly Column[]): Expressions =>
  Object.fromEntries(columns.map(({ name, source = name }) => [name, source]));

export function rollupOf(
  table: Table,
  levels: readonly Level[],
  { unit, partial = {} }: { unit?: readonly string[]; partial?: PartialSums } = {},
): Rollup {
  const isKey = ({ name }: Column): boolean => levels.some(({ set }) => set.includes(name));
  const [keys, sums] = [table.columns.filter(isKey), table.columns.filter((column) => !isKey(column))];
  const inUnit = keys.filter(({ name }) => unit?.includes(name) ?? true);
  return {
    ...{ table, levels, partial, keys: expressionsOf(keys), sums: expressionsOf(sums) },
    unit: expressionsOf(inUnit),
  };
}

export function groupBy(
  levels: readonly Pick<Level, 'set'>[],
  nameOf = (key: string): string => key,
): string {
  const sets = levels.map(({ set }) => `(${set.map(nameOf).join(', ')})`);
  return `GROUP BY ${sets.length === 1 ? sets : `GROUPING SETS (${sets.join(', ')})`}`;
}

/**
 * @param where a condition over `attempts`; all rows without it
 * @param from `attempts`, or the table that holds its rows here
 */
export function selectRollup(
  { keys, sums, levels, partial = {} }: Summed,
  where?: string,
  from = 'attempts',
): string {
  const columns = Object.entries({ ...keys, ...sums }).map(
    ([name, expression]) => `${whereAsked(partial[name], expression, 'day')} AS ${name}`,
  );
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${from}`,
    ...(where ? [`WHERE ${where}`] : []),
    groupBy(levels),
  ].join('\n');
}

export type Summed = Pick<Rollup, 'keys' | 'sums'> & {
  readonly levels: readonly Pick<Level, 'set'>[];
  readonly partial?: PartialSums;
};

/** A sum, or the default of its type in rows of the other level. */
export const whereAsked = (grouping: 0 | 1 | undefined, sum: string, day: string): string =>
  grouping === undefined
    ? sum
    : `if(grouping(${day}) = ${grouping}, ${sum}, defaultValueOfArgumentType(${sum}))`;

export const rollupColumns = ({ keys, sums }: Summed): string => Object.keys({ ...keys, ...sums }).join(', ');
