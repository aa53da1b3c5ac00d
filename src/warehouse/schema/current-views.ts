/** Views of current goals, catalogues and served forecasts. */
import type { Column, Table, View } from '../clickhouse/ddl.js';
import { catalogueColumns, goalChanges, servedForecasts, skillChanges } from './journal-tables.js';

export const pickColumns = ({ columns }: Table, ...names: string[]): Column[] =>
  columns
    .filter((column) => names.length === 0 || names.includes(column.name))
    .map(({ codec: _, ...column }) => column);

/** Subquery with the last change of each key: its values in the tuple `last`, its time in `last_at`. */
export const selectLastChanges = (table: string, key: string, values: string, condition = ''): string => `(
  SELECT ${key}, argMax(tuple(${values}), updated_at) AS last, max(updated_at) AS last_at
  FROM ${table} ${condition} GROUP BY ${key}
)`;

/** Repeated rows are equal, and `updated_at` grows with every change. */
export const goals: View = {
  name: 'goals',
  comment: 'Current goals of learners',
  columns: [
    ...pickColumns(goalChanges, 'tenant', 'user_id'),
    { name: 'target_score', type: 'UInt16', comment: 'Total score to reach, 400 to 1600' },
    ...pickColumns(goalChanges, 'target_date', 'updated_at'),
  ],
  query: `SELECT tenant, user_id, assumeNotNull(last.1) AS target_score, last.2 AS target_date, last_at AS updated_at
FROM ${selectLastChanges('goal_changes', 'tenant, user_id', 'target_score, target_date')} WHERE last.1 IS NOT NULL`,
};

const entryColumns = ['updated_at', ...catalogueColumns.map(({ name }) => name)];

export const skillCatalogue: View = {
  name: 'skill_catalogue',
  comment: "Current entries of a tenant's catalogue",
  columns: pickColumns(skillChanges),
  query: `SELECT tenant, skill_id, last.${entryColumns.length + 1} AS revision, ${entryColumns.map((name, i) => `last.${i + 1} AS ${name}`).join(', ')}
FROM (
  SELECT tenant, skill_id, argMax((${entryColumns.join(', ')}, revision), (updated_at, revision)) AS last
  FROM skill_changes GROUP BY tenant, skill_id
) WHERE weight > 0`,
};

export const forecasts: View = {
  name: 'forecasts',
  comment: 'Served forecasts, each once',
  columns: pickColumns(servedForecasts),
  query: `SELECT ${servedForecasts.columns.map(({ name }) => name).join(', ')} FROM served_forecasts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1`,
};
