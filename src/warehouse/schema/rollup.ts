import type { Column, Table, View } from '../clickhouse/ddl.js';

export type Expressions = Readonly<Record<string, string>>;
/** Sums of one level only, with grouping(day) of that level. */
export type PartialSums = Readonly<Record<string, 0 | 1>>;

export interface Level {
  set: readonly string[];
  where: string;
  /** Finished figures for analysts. */
  view: View;
}

export interface Rollup {
  table: Table;
  keys: Expressions;
  sums: Expressions;
  levels: readonly Level[];
  partial: PartialSums;
  /** Rows with equal values are compared and repaired together. */
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

/** Rows of the other level get the type's default. */
export const whereAsked = (grouping: 0 | 1 | undefined, sum: string, day: string): string =>
  grouping === undefined
    ? sum
    : `if(grouping(${day}) = ${grouping}, ${sum}, defaultValueOfArgumentType(${sum}))`;

export const rollupColumns = ({ keys, sums }: Summed): string => Object.keys({ ...keys, ...sums }).join(', ');
