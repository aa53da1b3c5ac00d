import type { Column, Table, View } from '../clickhouse/ddl.js';
import { summedAnswers } from './attempt-tables.js';

export type Expressions = Readonly<Record<string, string>>;
/** Sums of one level only, with grouping(day) of that level. */
export type PartialSums = Readonly<Record<string, 0 | 1>>;

export interface RollupLevel {
  groupingSet: readonly string[];
  where: string;
  /** Finished figures for analysts. */
  view: View;
}

export interface Rollup {
  table: Table;
  keys: Expressions;
  sums: Expressions;
  levels: readonly RollupLevel[];
  partialSums: PartialSums;
  /** Rows with equal values are compared and repaired together. */
  repairUnit: Expressions;
}

export const toExpressions = (columns: readonly Column[]): Expressions =>
  Object.fromEntries(columns.map(({ name, expression = name }) => [name, expression]));

export function defineRollup(
  table: Table,
  levels: readonly RollupLevel[],
  { repairUnit, partialSums = {} }: { repairUnit?: readonly string[]; partialSums?: PartialSums } = {},
): Rollup {
  const isKey = ({ name }: Column): boolean => levels.some(({ groupingSet }) => groupingSet.includes(name));
  const [keys, sums] = [table.columns.filter(isKey), table.columns.filter((column) => !isKey(column))];
  const unitKeys = keys.filter(({ name }) => repairUnit?.includes(name) ?? true);
  return {
    ...{ table, levels, partialSums, keys: toExpressions(keys), sums: toExpressions(sums) },
    repairUnit: toExpressions(unitKeys),
  };
}

export function buildGroupBy(
  levels: readonly Pick<RollupLevel, 'groupingSet'>[],
  qualify = (key: string): string => key,
): string {
  const sets = levels.map(({ groupingSet }) => `(${groupingSet.map(qualify).join(', ')})`);
  return `GROUP BY ${sets.length === 1 ? sets : `GROUPING SETS (${sets.join(', ')})`}`;
}

export function buildRollupSelect(
  { keys, sums, levels, partialSums = {} }: RollupQuery,
  condition?: string,
  source = summedAnswers,
): string {
  const columns = Object.entries({ ...keys, ...sums }).map(
    ([name, expression]) => `${buildPartialSum(partialSums[name], expression, 'day')} AS ${name}`,
  );
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${source}`,
    ...(condition ? [`WHERE ${condition}`] : []),
    buildGroupBy(levels),
  ].join('\n');
}

export type RollupQuery = Pick<Rollup, 'keys' | 'sums'> & {
  readonly levels: readonly Pick<RollupLevel, 'groupingSet'>[];
  readonly partialSums?: PartialSums;
};

/** Rows of the other level get the type's default. */
export const buildPartialSum = (grouping: 0 | 1 | undefined, sum: string, day: string): string =>
  grouping === undefined
    ? sum
    : `if(grouping(${day}) = ${grouping}, ${sum}, defaultValueOfArgumentType(${sum}))`;

export const listRollupColumns = ({ keys, sums }: RollupQuery): string =>
  Object.keys({ ...keys, ...sums }).join(', ');
