/**
 * Every table that holds rows of learners, by `tenant` and `user_id`: an export sends all of them, and an erasure leaves
 * none. A test looks for tables that are missing here. (The sums by skill, `daily_skill`, name no learner; their number of
 * learners is a sketch that cannot be asked for one.)
 */
import type { Table } from '../clickhouse/ddl.js';
import { archivedDays, archivedLearnerSkill, isArchived, keptRows, learnerSums } from './rollups.js';
import { attempts, goalChanges, learnerSnapshots, servedForecasts, takenBack } from './tables.js';

/**
 * SQL with parameters that say where a history ended: after an erasure, a learner may have begun a new one. What names the
 * learner is `ofLearner` alone, so that the same SQL can be asked of many (`ofEach` in correction-warehouse.ts).
 */
export interface LearnerTable {
  readonly table: Table;
  readonly rowType: string;
  /** Condition on the rows of the history that ended. */
  readonly ended: string;
  /**
   * Of sums: queries of `tenant`, `user_id` and `n`, whose sum is how many answers they count, `times` each. Without
   * them, the rows that meet the condition count.
   */
  readonly endedSums?: { readonly query: string; readonly times: number };
  /** Of sums: the view that finishes them, which an export sends, and what names a learner's row there. */
  readonly exported?: { readonly from: string; readonly orderBy: string };
}

export const ofLearner = 'tenant = {tenant:String} AND user_id = {user_id:String}';
/** Outbox ids are in order within their partition, which a learner never leaves. */
export const before =
  '(partition_id != {partition:UInt16} OR (outbox_ms, outbox_seq) < ({below_ms:UInt64}, {below_seq:UInt64}))';
const upTo = (column: string, name: 'until' | 'goal_until' | 'below_ms'): string =>
  `${ofLearner} AND ${column} <= fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`;

/** A month is archived when it is over: what came in the one that the history ended in is archived after that. */
const archivedBefore = "month < toYYYYMM(fromUnixTimestamp64Milli({until:Int64}, 'UTC'))";
const monthBefore = `${ofLearner} AND ${archivedBefore}`;

const { table: sums, levels } = learnerSums;
/** Sums do not separate the histories: what the answers of the new one do not explain is of the old one. */
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
  // Redis dates them, as it does the erasure.
  { table: takenBack, rowType: 'taken_back', ended: upTo('taken_back_at', 'below_ms') },
];

/** What an export reads of a table: a row that was inserted twice, or is not summed up yet, is one there. */
export const exportedFrom = ({ table, exported }: LearnerTable): string =>
  exported?.from ?? `${table.name} ${table.engine === 'MergeTree' ? '' : 'FINAL'}`;
