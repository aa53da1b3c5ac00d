/**
 * Exports and erasures use this list. A test finds missing tables. `daily_skill` has only a sketch of
 * learners.
 */
import type { Table } from '../clickhouse/ddl.js';
import { attempts, learnerSnapshots, replacedAttempts, skillCount } from './attempt-tables.js';
import { groupMemberChanges, learnerProfileChanges } from './group-tables.js';
import { goalChanges, retractedAnswers, servedForecasts } from './journal-tables.js';
import {
  archivedCondition,
  archivedLearnerSkill,
  archiveSource,
  learnerSums,
  retainedCondition,
} from './rollups.js';

/**
 * SQL for an ended history: after an erasure, a learner may start a new one. `expandToLearners`
 * (correction-warehouse.ts) replaces `learnerCondition`, so nothing else may name the learner.
 */
export interface LearnerTable {
  readonly table: Table;
  readonly rowType: string;
  readonly endedCondition: string;
  /**
   * For sums: selects `tenant`, `user_id` and `n`. The sum of `n` is the number of answers, each under all its
   * skills, times `countsPerAnswer`.
   */
  readonly endedSums?: { readonly query: string; readonly countsPerAnswer: number };
  readonly exportSource?: { readonly from: string; readonly orderBy: string };
}

export const learnerCondition = 'tenant = {tenant:String} AND user_id = {user_id:String}';
/** Outbox ids are ordered within a partition, and a learner stays in one. */
export const belowCondition =
  '(partition_id != {partition:UInt16} OR (outbox_ms, outbox_seq) < ({below_ms:UInt64}, {below_seq:UInt64}))';
/** The history ends at the time in the parameter `until`, inclusive. */
const createTimedTable = (
  table: Table,
  rowType: string,
  column: string,
  until: 'until' | 'goal_until' | 'below_ms',
): LearnerTable => ({
  ...{ table, rowType },
  endedCondition: `${learnerCondition} AND ${column} <= fromUnixTimestamp64Milli({${until}:Int64}, 'UTC')`,
});

/** A month is archived after its end: rows of the month in which the history ended belong to the new one. */
const archivedMonthCondition = "month < toYYYYMM(fromUnixTimestamp64Milli({until:Int64}, 'UTC'))";
const endedMonthCondition = `${learnerCondition} AND ${archivedMonthCondition}`;

const { table: sums, levels } = learnerSums;
/** Sums mix both histories, so subtract the new one's answers. */
const remainderQuery = `SELECT tenant, user_id, toInt64(r.attempts) AS n FROM ${sums.name} AS r WHERE ${learnerCondition}
    UNION ALL SELECT tenant, user_id, -${levels.length} * toInt64(${skillCount}) AS n FROM attempts WHERE ${learnerCondition} AND NOT ${belowCondition} AND ${retainedCondition}
    UNION ALL SELECT tenant, user_id, -${levels.length} * toInt64(a.attempts) AS n FROM ${archiveSource}
      WHERE ${learnerCondition} AND NOT ${archivedMonthCondition} AND ${archivedCondition}`;

const endedRowsCondition = `${learnerCondition} AND ${belowCondition}`;

export const learnerTables: readonly LearnerTable[] = [
  { table: attempts, rowType: 'attempt', endedCondition: endedRowsCondition },
  { table: replacedAttempts, rowType: 'replaced_attempt', endedCondition: endedRowsCondition },
  {
    ...{
      table: sums,
      rowType: 'skill_day',
      exportSource: { from: 'learner_skill_daily', orderBy: 'skill_id, day' },
    },
    ...{
      endedCondition: learnerCondition,
      endedSums: { query: remainderQuery, countsPerAnswer: levels.length },
    },
  },
  { table: archivedLearnerSkill, rowType: 'archived_skill_day', endedCondition: endedMonthCondition },
  { table: learnerSnapshots, rowType: 'learner_snapshot', endedCondition: endedMonthCondition },
  createTimedTable(goalChanges, 'goal_change', 'updated_at', 'goal_until'),
  createTimedTable(servedForecasts, 'served_forecast', 'made_at', 'until'),
  // In Redis time, like the erasure.
  createTimedTable(retractedAnswers, 'taken_back', 'taken_back_at', 'below_ms'),
  createTimedTable(groupMemberChanges, 'group_member_change', 'updated_at', 'below_ms'),
  createTimedTable(learnerProfileChanges, 'profile_change', 'updated_at', 'below_ms'),
];

export const formatExportSource = ({ table, exportSource }: LearnerTable): string =>
  exportSource?.from ?? `${table.name} ${table.engine === 'MergeTree' ? '' : 'FINAL'}`;
