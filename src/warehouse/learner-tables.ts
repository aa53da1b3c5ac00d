/**
 * Every table that holds rows of learners, by `tenant` and `user_id`: an export tells all of them, and an erasure leaves
 * none. A test looks for tables that are missing here. (The sums by skill, `daily_skill`, name no learner; their number of
 * learners is a sketch that cannot be asked for one.)
 */
import { archivedLearnerSkill } from './archive.js';
import { attempts } from './attempts.js';
import { goalChanges, servedForecasts } from './journal-tables.js';
import { learnerSnapshots } from './learner-snapshots.js';
import { learnerSkillDays } from './rollups.js';
import type { Table } from './table.js';

export interface LearnerTable {
  readonly table: Table;
  /** What an export calls one row. */
  readonly rowType: string;
}

export const learnerTables: readonly LearnerTable[] = [
  { table: attempts, rowType: 'attempt' },
  { table: learnerSkillDays, rowType: 'skill_day' },
  { table: archivedLearnerSkill, rowType: 'archived_skill_day' },
  { table: learnerSnapshots, rowType: 'learner_snapshot' },
  { table: goalChanges, rowType: 'goal_change' },
  { table: servedForecasts, rowType: 'served_forecast' },
];

/** What follows the table's name in a query, so that a row that was inserted twice, or is not summed up yet, is one row. */
export const finalOf = ({ engine }: Table): string => (engine === 'MergeTree' ? '' : 'FINAL');
