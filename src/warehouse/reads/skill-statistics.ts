/** How the learners of a tenant do on its skills. The questions, and the words, are those of docs/analytics.md. */
import type { TenantRead } from './tenant-read.js';

/** A skill over its learners; times and speeds are medians of them. */
export interface SkillSums {
  readonly skillId: string;
  readonly learners: number;
  readonly answers: number;
  readonly accuracy: number;
  readonly meanPCorrect: number;
  /** Share of the learners who were on a plateau on their last day with answers. */
  readonly plateauShare: number;
  /** First quartile, median and third quartile of mastery won by an answer. */
  readonly velocity: readonly [q1: number, median: number, q3: number];
  /** Null where nobody has three times. */
  readonly efficiencyIndex: number | null;
  readonly correctPerMinute: number | null;
}

/**
 * "On which skills are learners slowest?", with what was right and predicted. The key of the view's table does not begin
 * with the skill, that of daily_skill does: it says which skills there are.
 * @param skills a condition that all of the tables are asked
 */
const selectSkills = (skills: string): string => `
SELECT v.skill_id AS skillId, v.learners AS learners, v.attempts AS answers,
  d.accuracy AS accuracy, d.meanPCorrect AS meanPCorrect, v.plateau_share AS plateauShare,
  [v.velocity_per_attempt_q1, v.velocity_per_attempt_median, v.velocity_per_attempt_q3] AS velocity,
  v.efficiency_index_median AS efficiencyIndex, v.correct_per_minute AS correctPerMinute
FROM skill_velocity AS v
JOIN (
  SELECT skill_id, sum(r.correct) / sum(r.attempts) AS accuracy, sum(r.predicted_correct) / sum(r.attempts) AS meanPCorrect
  FROM daily_skill AS r WHERE tenant = {tenant:String} AND ${skills} GROUP BY skill_id
) AS d ON d.skill_id = v.skill_id
WHERE v.tenant = {tenant:String} AND v.${skills}
ORDER BY skillId`;

const selectPage = selectSkills(`skill_id IN (
  SELECT skill_id FROM daily_skill WHERE tenant = {tenant:String} AND skill_id > {after:String}
  GROUP BY skill_id ORDER BY skill_id LIMIT {atMost:UInt32})`);

export type SkillStatistics = ReturnType<typeof createSkillStatistics>;

/** Its functions throw what the read throws. */
export const createSkillStatistics = (read: TenantRead) => ({
  /** Skills with answers, by the bytes of their ids. @param after null: from the first on */
  list: (tenant: string, after: string | null, atMost: number): Promise<SkillSums[]> =>
    read(selectPage, tenant, { after: after ?? '', atMost }),
});
