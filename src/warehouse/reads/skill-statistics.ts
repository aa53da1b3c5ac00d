/** How the learners of a tenant do on its skills. The questions, and the words, are those of docs/analytics.md. */
import { archivedDays, isArchived, keptRows } from '../schema/rollups.js';
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

/** A step of the learners' way on a skill: their first answer on it, their second, and so on. */
export interface CurveStep {
  readonly attempt: number;
  /** Those who came so far: of later steps the learners who went on, not all. */
  readonly learners: number;
  readonly correct: number;
  readonly pCorrect: number;
  /** Mean of mastery before the answer. */
  readonly mastery: number;
}

const mostSteps = 30;
/** Of fewer learners a step says nothing of others. */
const fewestLearners = 5;

/**
 * "Does practice of a skill help?", without the condition that learners have ten answers: it tells how many came so far.
 * Learners whose first answers were dropped for their age are left out, for the rest of theirs would be taken for the first.
 * The table is read in its order, and no more than these answers of a learner are held.
 */
const selectCurve = `
SELECT attempt, count() AS learners, sum(is_correct) AS correct, avg(p_correct) AS pCorrect, avg(mastery_before) AS mastery
FROM (
  SELECT is_correct, p_correct, mastery_before, row_number() OVER (PARTITION BY user_id ORDER BY learner_seq) AS attempt
  FROM (
    SELECT user_id, learner_seq, is_correct, p_correct, mastery_before FROM attempts
    WHERE ${keptRows} AND tenant = {tenant:String} AND skill_id = {skillId:String} AND user_id NOT IN (
      SELECT a.user_id FROM ${archivedDays}
      WHERE ${isArchived} AND a.tenant = {tenant:String} AND a.skill_id = {skillId:String})
    ORDER BY tenant, user_id, learner_seq LIMIT ${mostSteps} BY user_id
  )
)
GROUP BY attempt HAVING learners >= ${fewestLearners} ORDER BY attempt`;

/** A week of the learners who first answered anything in the same week. */
export interface CohortWeek {
  /** YYYY-MM-DD, a Monday. */
  readonly cohort: string;
  /** Weeks since then; 0 is the first. */
  readonly week: number;
  readonly learners: number;
  readonly answers: number;
  readonly accuracy: number;
  /** Mean over their days of mastery after the last answer of the day. */
  readonly meanMastery: number;
}

/** "How do two cohorts do in the same week of their course?": the youngest that came in the last weeks, and these weeks. */
const selectCohorts = `
SELECT cohort, week, c.learners AS learners, c.attempts AS answers, c.accuracy AS accuracy, c.mean_mastery AS meanMastery
FROM cohort_skill_weekly AS c
WHERE c.tenant = {tenant:String} AND c.skill_id = {skillId:String} AND cohort + 7 * week >= {since:Date}
QUALIFY dense_rank() OVER (ORDER BY cohort DESC) <= {cohorts:UInt8}
ORDER BY cohort, week`;

/** A question over the answers to it that were not too rapid to be a solution. */
export interface ItemSums {
  readonly itemId: string;
  readonly learners: number;
  readonly answers: number;
  readonly correct: number;
  readonly accuracy: number;
  readonly pCorrect: number;
  /** What the learners' mastery alone foretells. */
  readonly expected: number;
  readonly medianSeconds: number | null;
  readonly sureAndWrong: number | null;
  readonly misleading: boolean | null;
}

/**
 * "Which items are hardest?", with "Which items mislead?" and "Which mistakes are learners sure of?", each null below the
 * counts that it asks for there.
 */
const selectItems = `
SELECT item_id AS itemId, uniq(user_id) AS learners, count() AS answers, sum(is_correct) AS correct,
  correct / answers AS accuracy, avg(p_correct) AS pCorrect,
  avg(mastery_before * (1 - p_slip) + (1 - mastery_before) * p_guess) AS expected,
  quantileExactInclusive(0.5)(time_spent_seconds) AS medianSeconds,
  countIf(confidence_score >= 4) AS sure,
  if(sure >= 10, countIf(confidence_score >= 4 AND is_correct = 0) / sure, NULL) AS sureAndWrong,
  countIf(mastery_before >= 0.8) AS strong, countIf(mastery_before < 0.5) AS weak,
  if(strong >= 15 AND weak >= 15,
    toBool(avgIf(is_correct, mastery_before >= 0.8) <= avgIf(is_correct, mastery_before < 0.5)), NULL) AS misleading
FROM attempts
WHERE ${keptRows} AND tenant = {tenant:String} AND skill_id = {skillId:String} AND item_id != '' AND rapid = 0
GROUP BY itemId HAVING answers >= 10 AND (accuracy, itemId) > ({accuracy:Float64}, {itemId:String})
ORDER BY accuracy, itemId LIMIT {atMost:UInt32}`;

export type ItemPlace = Pick<ItemSums, 'accuracy' | 'itemId'>;
const beforeAll: ItemPlace = { accuracy: -1, itemId: '' };

export type SkillStatistics = ReturnType<typeof createSkillStatistics>;

/** Its functions throw what the read throws. */
export const createSkillStatistics = (read: TenantRead) => ({
  /** Skills with answers, by the bytes of their ids. @param after null: from the first on */
  list: (tenant: string, after: string | null, atMost: number): Promise<SkillSums[]> =>
    read(selectPage, tenant, { after: after ?? '', atMost }),

  /** Null where nobody's answer on the skill is stored. */
  ofSkill: async (tenant: string, skillId: string): Promise<SkillSums | null> => {
    const [sums = null] = await read<SkillSums>(selectSkills('skill_id = {skillId:String}'), tenant, {
      skillId,
    });
    return sums;
  },

  /** Up to the 30th step, or the last that five learners came to. */
  learningCurve: (tenant: string, skillId: string): Promise<CurveStep[]> =>
    read(selectCurve, tenant, { skillId }),

  /** @param since YYYY-MM-DD, the Monday of the first week @param cohorts the most, of which the youngest are told */
  cohorts: (tenant: string, skillId: string, since: string, cohorts: number): Promise<CohortWeek[]> =>
    read(selectCohorts, tenant, { skillId, since, cohorts }),

  /** Items with ten answers, the hardest first. @param after null: from the first on */
  items: (tenant: string, skillId: string, after: ItemPlace | null, atMost: number): Promise<ItemSums[]> =>
    read(selectItems, tenant, { skillId, ...(after ?? beforeAll), atMost }),
});
