import type {
  CohortWeek,
  CurveStep,
  ListedSkill,
  SkillItem,
  SkillStatistics,
} from '../../contracts/responses/statistics.js';
import { archivedCondition, archiveSource, retainedCondition } from '../schema/rollups.js';
import type { TenantRead } from './tenant-read.js';

/** "On which skills do learners progress most slowly?" (docs/analytics/skills.md). */
const buildSkillsQuery = (skillCondition: string, speedColumns: string): string => `
SELECT v.skill_id AS skill_id, v.learners AS learners, v.attempts AS answers, d.accuracy AS accuracy,
  d.mean_p_correct AS mean_p_correct, round(v.plateau_share, 4) AS plateau_share, ${speedColumns}
FROM skill_velocity AS v
JOIN (
  SELECT skill_id, round(sum(r.correct) / sum(r.attempts), 4) AS accuracy,
    round(sum(r.predicted_correct) / sum(r.attempts), 4) AS mean_p_correct
  FROM daily_skill AS r WHERE tenant = {tenant:String} AND ${skillCondition} GROUP BY skill_id
) AS d ON d.skill_id = v.skill_id
WHERE v.tenant = {tenant:String} AND v.${skillCondition}
ORDER BY skill_id`;

const selectPage = buildSkillsQuery(
  `skill_id IN (SELECT skill_id FROM daily_skill WHERE tenant = {tenant:String} AND skill_id > {after:String}
    GROUP BY skill_id ORDER BY skill_id LIMIT {atMost:UInt32})`,
  `round(v.velocity_per_attempt_median, 6) AS velocity_per_attempt,
  round(v.efficiency_index_median, 1) AS efficiency_index, round(v.correct_per_minute, 4) AS correct_per_minute`,
);

const quartiles = ['q1', 'median', 'q3'];
const selectSkill = buildSkillsQuery(
  'skill_id = {skillId:String}',
  `CAST((${quartiles.map((one) => `round(v.velocity_per_attempt_${one}, 6)`)}),
    'Tuple(${quartiles.map((one) => `${one} Float64`)})') AS velocity_per_attempt`,
);

const maxSteps = 30;
const minLearners = 5;

/** "Does practice of a skill help?" Leaves out learners with archived answers. */
const selectCurve = `
SELECT attempt, count() AS learners, avg(s.is_correct) AS accuracy, avg(s.p_correct) AS p_correct,
  avg(s.mastery_before) AS mastery
FROM (
  SELECT is_correct, p_correct, mastery_before, row_number() OVER (PARTITION BY user_id ORDER BY learner_seq) AS attempt
  FROM (
    SELECT user_id, learner_seq, is_correct, p_correct, mastery_before FROM skill_answers
    WHERE ${retainedCondition} AND tenant = {tenant:String} AND skill_id = {skillId:String} AND user_id NOT IN (
      SELECT a.user_id FROM ${archiveSource}
      WHERE ${archivedCondition} AND a.tenant = {tenant:String} AND a.skill_id = {skillId:String})
    ORDER BY tenant, user_id, learner_seq LIMIT ${maxSteps} BY user_id
  )
) AS s
GROUP BY attempt HAVING learners >= ${minLearners} ORDER BY attempt`;

const selectCohorts = `
SELECT cohort, week, c.learners AS learners, c.attempts AS answers, round(c.accuracy, 4) AS accuracy,
  round(c.mean_mastery, 4) AS mean_mastery
FROM cohort_skill_weekly AS c
WHERE c.tenant = {tenant:String} AND c.skill_id = {skillId:String} AND cohort + 7 * week >= toMonday({since:Date})
QUALIFY dense_rank() OVER (ORDER BY cohort DESC) <= {cohorts:UInt8}
ORDER BY cohort, week`;

/**
 * "Which items are hardest?", "Which items do strong learners fail?" and "Which items cause confident mistakes?"; null:
 * too few answers. `misleading`: strong learners do no better than weak ones.
 */
const selectItems = `
WITH countIf(confidence_score >= 4) AS sure, arrayMin(masteries_before) AS mastery,
  countIf(mastery >= 0.8) AS strong, countIf(mastery < 0.5) AS weak
SELECT item_id, uniq(user_id) AS learners, count() AS answers, avg(is_correct) AS accuracy, avg(a.p_correct) AS p_correct,
  avg(mastery_chance) AS expected,
  round(quantileExactInclusive(0.5)(time_spent_seconds), 1) AS median_seconds,
  if(sure >= 10, countIf(confidence_score >= 4 AND is_correct = 0) / sure, NULL) AS sure_and_wrong,
  if(strong >= 15 AND weak >= 15,
    toBool(avgIf(is_correct, mastery >= 0.8) <= avgIf(is_correct, mastery < 0.5)), NULL) AS misleading
FROM skill_answers AS a
WHERE ${retainedCondition} AND tenant = {tenant:String} AND skill_id = {skillId:String} AND item_id != '' AND rapid = 0
GROUP BY item_id HAVING answers >= 10 AND (accuracy, item_id) > ({accuracy:Float64}, {item_id:String})
ORDER BY accuracy, item_id LIMIT {atMost:UInt32}`;

export type ItemPosition = Pick<SkillItem, 'accuracy' | 'item_id'>;
const firstPosition: ItemPosition = { accuracy: -1, item_id: '' };

export type SkillSums = Omit<SkillStatistics, 'learning_curve' | 'cohorts' | 'source_lag_seconds'>;
/** The caller computes the interval. */
type WithoutInterval<Row> = Omit<Row, 'low' | 'high' | 'beyond'>;

export type SkillReads = ReturnType<typeof createSkillReads>;

export const createSkillReads = (read: TenantRead) => ({
  /** Ordered by the bytes of the ids. @param after null: from the first */
  listSkills: (tenant: string, after: string | null, atMost: number): Promise<ListedSkill[]> =>
    read(selectPage, tenant, { after: after ?? '', atMost }),

  findSkill: async (tenant: string, skillId: string): Promise<SkillSums | null> =>
    (await read<SkillSums>(selectSkill, tenant, { skillId }))[0] ?? null,

  /** Up to 30 steps with at least five learners. */
  fetchLearningCurve: (tenant: string, skillId: string): Promise<WithoutInterval<CurveStep>[]> =>
    read(selectCurve, tenant, { skillId }),

  /** @param since YYYY-MM-DD @param cohorts limit; returns the youngest */
  fetchCohorts: (tenant: string, skillId: string, since: string, cohorts: number): Promise<CohortWeek[]> =>
    read(selectCohorts, tenant, { skillId, since, cohorts }),

  /** Hardest first. */
  listItems: (tenant: string, skillId: string, after: ItemPosition | null, atMost: number) =>
    read<WithoutInterval<SkillItem>>(selectItems, tenant, { skillId, ...(after ?? firstPosition), atMost }),
});
