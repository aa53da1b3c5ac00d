/**
 * All tables with rows of learners: exports send them, and erasures delete them. A test finds missing tables. `daily_skill` names
 * no learner; its number of learners is a sketch.
 */
import type { Table } from '../clickhouse/ddl.js';
import { attempts, learnerSnapshots } from './attempt-tables.js';
import { goalChanges, servedForecasts, takenBack } from './journal-tables.js';
import { archivedDays, archivedLearnerSkill, isArchived, keptRows, learnerSums } from './rollups.js';

/**
 * SQL with parameters for the end of a history: a learner may start a new one after an erasure. Only `ofLearner` names the
 * learner, so that `ofEach` (correction-warehouse.ts) can turn the SQL into one for many.
 */
export interface LearnerTable {
  readonly table: Table;
  readonly rowType: string;
  readonly ended: string;
  /** For sums: selects `tenant`, `user_id` and `n`; the sum of n is `times` the number of answers. Default: count rows. */
  readonly endedSums?: { readonly query: string; readonly times: number };
  /** For sums: view for exports, and the key of a learner's row. */
  readonly exported?: { readonly from: string; readonly orderBy: string };
}

export const ofLearner = 'tenant = {tenant:String} AND user_id = {user_id:String}';
/** Outbox ids are ordered within a partition, and a learner stays in one. */
export const before =
  '(partition_id != {partition:UInt16} OR (outbox_ms, outbox_seq) < ({below_ms:UInt64}, {below_seq:UInt64}))';
const upTo = (column: string, name: 'until' | 'goal_until' | 'below_ms'): string =>
  `${ofLearner} AND ${column} <= fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`;

/** Months are archived after their end, so the month in which the history ended is not before it. */
const archivedBefore = "month < toYYYYMM(fromUnixTimestamp64Milli({until:Int64}, 'UTC'))";
const monthBefore = `${ofLearner} AND ${archivedBefore}`;

const { table: sums, levels } = learnerSums;
/** Sums mix both histories: the remainder after the new one's answers belongs to the old one. */
const unexplained = `SELECT tenant, user_id, toInt64(r.attempts) AS n FROM ${sums.name} AS r WHERE ${ofLearner}
    UNION ALL SELECT tenant, user_id, toInt64(-${levels.length}) AS n FROM attempts WHERE ${ofLearner} AND NOT ${before} AND ${keptRows}
    UNION ALL SELECT tenant, user_id, -${levels.length} * toInt64(a.attempts) AS n FROM ${archivedDays}
      WHERE ${ofLearner} AND NOT ${archivedBefore} AND ${isArchived}`;

export const learnerTables: readonly LearnerTable[] = [
  { table: attempts, rowType: 'attempt', ended: `${ofLearner} AND ${before}` },
  {
    ...{
      table: sums,
      rowType: 'skill_day',
      exported: { from: 'learner_skill_daily', orderBy: 'skill_id, day' },
    },
    ...{ ended: ofLearner, endedSums: { query: unexplained, times: levels.length } },
  },
  { table: archivedLearnerSkill, rowType: 'archived_skill_day', ended: monthBefore },
  { table: learnerSnapshots, rowType: 'learner_snapshot', ended: monthBefore },
  { table: goalChanges, rowType: 'goal_change', ended: upTo('updated_at', 'goal_until') },
  { table: servedForecasts, rowType: 'served_forecast', ended: upTo('made_at', 'until') },
  // On Redis' clock, like the erasure.
  { table: takenBack, rowType: 'taken_back', ended: upTo('taken_back_at', 'below_ms') },
];

export const exportedFrom = ({ table, exported }: LearnerTable): string =>
  exported?.from ?? `${table.name} ${table.engine === 'MergeTree' ? '' : 'FINAL'}`;
