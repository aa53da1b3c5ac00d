/** Views for analysts of groups. They read daily sums, to stay fast with any number of answers. */
import { parseColumns, type View } from '../clickhouse/ddl.js';
import { toLocalDate } from './local-days.js';

export const groupWeekly: View = {
  name: 'group_weekly',
  comment: 'Practice, accuracy, predictions and mastery by group and week',
  columns: parseColumns(`
    tenant LowCardinality(String) -- Owner of the group
    group_id String -- Group
    name String -- Current name of the group
    kind LowCardinality(String) -- Current kind of the group, for example class
    week Date -- Monday of the ISO week of local days
    learners UInt64
      -- Members with answers in that week. A day counts if the learner is a member at its end. Members who joined on the day on which the group was created count from their first answer
    learner_days UInt64 -- Days on which a member gave answers, summed over the members
    answers UInt64 -- Answers of the members; an answer with several skills counts once
    correct UInt64 -- Correct answers of the members
    accuracy Float64 -- Share of correct answers
    mean_p_correct Float64 -- Mean predicted probability of a correct answer; close to accuracy if the model is calibrated
    seconds Float64 -- Total time of answers with a time above 0 and up to 3600 s
    mastery_gain Float64 -- Sum of mastery_after - mastery_before over the skills of all answers
    mean_mastery Float64 -- Mean over learners, skills and days of mastery after the last answer of the day
  `),
  query: `SELECT m.tenant AS tenant, m.group_id AS group_id, m.name AS name, m.kind AS kind, toMonday(d.day) AS week,
  uniqExact(d.user_id) AS learners,
  uniqExact(d.user_id, d.day) AS learner_days,
  sum(d.answers) AS answers,
  sum(d.answers_correct) AS correct,
  correct / answers AS accuracy,
  sum(d.answers_predicted) / answers AS mean_p_correct,
  sum(d.answers_seconds) AS seconds,
  sum(d.mastery_gain) AS mastery_gain,
  avg(d.last_mastery) AS mean_mastery
FROM learner_skill_daily AS d
JOIN (
  SELECT s.tenant AS tenant, s.group_id AS group_id, s.user_id AS user_id, g.name AS name, g.kind AS kind,
    ${toLocalDate('s.joined_at')} AS joined_day,
    if(joined_day = ${toLocalDate('g.created_at')}, toDate(0), joined_day) AS first_day,
    if(isNull(s.left_at), toDate(65535), ${toLocalDate('assumeNotNull(s.left_at)')}) AS end_day
  FROM group_members AS s JOIN groups AS g ON g.tenant = s.tenant AND g.group_id = s.group_id
  LEFT JOIN time_zones AS z ON z.tenant = s.tenant
) AS m ON m.tenant = d.tenant AND m.user_id = d.user_id
WHERE d.day >= m.first_day AND d.day < m.end_day
GROUP BY tenant, group_id, name, kind, week`,
};
