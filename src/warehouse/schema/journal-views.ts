/** What is in force, from the changes that the journal brought. */

import type { DescribedView, Table } from '../clickhouse/table.js';
import { catalogueColumns, goalChanges, servedForecasts, skillChanges } from './journal-tables.js';

/** Columns of a table as a view shows them. */
export const columnsOf = ({ columns }: Table, ...names: string[]): DescribedView['columns'] =>
  columns
    .filter((column) => names.length === 0 || names.includes(column.name))
    .map(({ name, type, comment }) => ({ name, type, comment }));

/** A row that was inserted twice is the same twice, and a goal's time grows with every change. */
export const goals: DescribedView = {
  name: 'goals',
  comment: 'The goal in force of every learner who has one',
  columns: [
    ...columnsOf(goalChanges, 'tenant', 'user_id'),
    { name: 'target_score', type: 'UInt16', comment: 'Total score to reach, 400 to 1600' },
    ...columnsOf(goalChanges, 'target_date', 'updated_at'),
  ],
  query: `SELECT tenant, user_id, assumeNotNull(last.1) AS target_score, last.2 AS target_date, last_at AS updated_at
FROM (
  SELECT tenant, user_id, argMax((target_score, target_date), updated_at) AS last, max(updated_at) AS last_at
  FROM goal_changes GROUP BY tenant, user_id
) WHERE last.1 IS NOT NULL`,
};

const entry = ['updated_at', ...catalogueColumns.map(({ name }) => name)];

export const skillCatalogue: DescribedView = {
  name: 'skill_catalogue',
  comment: "The entry in force of every skill that a tenant's catalogue has",
  columns: [
    ...columnsOf(skillChanges, 'tenant', 'skill_id', 'revision'),
    ...columnsOf(skillChanges, ...entry),
  ],
  query: `SELECT tenant, skill_id, last.${entry.length + 1} AS revision, ${entry.map((name, i) => `last.${i + 1} AS ${name}`).join(', ')}
FROM (
  SELECT tenant, skill_id, argMax((${entry.join(', ')}, revision), (updated_at, revision)) AS last
  FROM skill_changes GROUP BY tenant, skill_id
) WHERE weight > 0`,
};

export const forecasts: DescribedView = {
  name: 'forecasts',
  comment: 'Every forecast that was served, once',
  columns: columnsOf(servedForecasts),
  query: `SELECT ${servedForecasts.columns.map(({ name }) => name).join(', ')} FROM served_forecasts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1`,
};
