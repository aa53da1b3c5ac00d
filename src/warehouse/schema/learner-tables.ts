/**
 * Exports and erasures use this list. A test finds missing tables. `daily_skill` has only a sketch of
 * learners.
 */
import type { Table } from '../clickhouse/ddl.js';
import { attempts, learnerSnapshots } from './attempt-tables.js';
import { goalChanges, servedForecasts, takenBack } from './journal-tables.js';
import { archivedDays, archivedLearnerSkill, isArchived, keptRows, learnerSums } from './rollups.js';

/**
 * SQL for an ended history: after an erasure, a learner may start a new one. `expandToLearners`
 * (correction-warehouse.ts) replaces `learnerCondition`, so nothing else may name the learner.
 */
export interface LearnerTable {
  readonly table: Table;
  readonly rowType: string;
  readonly ended: string;
  /**
   * For sums: selects `tenant`, `user_id` and `n`. The sum of `n` is the number of answers times
   * `countsPerAnswer`.
   */
  readonly endedSums?: { readonly query: string; readonly times: number };
  readonly exported?: { readonly from: string; readonly orderBy: string };
}

export const ofLearner = 'tenant = {tenant:String} AND user_id = {user_id:String}';
/** Outbox ids are ordered within a partition, and a learner stays in one. */
export const before =
  '(partition_id != {partition:UInt16} OR (outbox_ms, outbox_seq) < ({below_ms:UInt64}, {below_seq:UInt64}))';
const upTo = (column: string, name: 'until' | 'goal_until' | 'below_ms'): string =>
  `${ofLearner} AND ${column} <= fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`;

/** A month is archived after its end: rows of the month in which the history ended belong to the new one. */
const archivedBefore = "month < toYYYYMM(fromUnixTimestamp64Milli({until:Int64}, 'UTC'))";
const monthBefore = `${ofLearner} AND ${archivedBefore}`;

const { table: sums, levels } = learnerSums;
/** Sums mix both histories, so subtract the new one's answers. */
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
  // In Redis time, like the erasure.
  { table: takenBack, rowType: 'taken_back', ended: upTo('taken_back_at', 'below_ms') },
];

export const exportedFrom = ({ table, exported }: LearnerTable): string =>
  exported?.from ?? `${table.name} ${table.engine === 'MergeTree' ? '' : 'FINAL'}`;
