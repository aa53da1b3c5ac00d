/**
 * Views on how fast and how efficiently learners learn, by skill. They read the daily sums alone, to stay quick however
 * many answers there are. Numbers of the models are written out: a released view is never edited.
 */
import { columnsOf, type View } from '../clickhouse/table.js';

/** Sums of a group of `daily_learner_skill AS r`. */
const sums = `sum(r.attempts) AS attempts, sum(r.correct) AS correct, sum(r.predicted_correct) AS predicted,
    sum(r.mastery_gain) AS gain, uniqExact(r.day) AS active_days, sum(r.timed_attempts) AS timed,
    sum(r.timed_correct) AS timed_correct, sum(r.timed_seconds) AS seconds, sum(r.log_seconds) AS log_seconds`;

/** What is usual for a skill: by how much answers differ from what was predicted, and ln seconds. */
const norms = `SELECT tenant, skill_id,
    (sum(r.correct) - sum(r.predicted_correct)) / sum(r.attempts) AS surprise,
    sqrt(greatest(sum(r.squared_error) / sum(r.attempts), 0.04)) AS surprise_sd,
    sum(r.log_seconds) / sum(r.timed_attempts) AS log_mean,
    sqrt(greatest(sum(r.log_seconds_squared) / sum(r.timed_attempts) - pow(log_mean, 2), 0.04)) AS log_sd
  FROM daily_learner_skill AS r GROUP BY tenant, skill_id`;

/**
 * Right answers beyond the predicted ones against ln time, both standardised by the skill's norms, as a percentage
 * of the normal distribution of their difference over sqrt 2: 50 is as all learners of the skill together. It is
 * what learners get answer by answer (src/domain/tracing/pace.ts), of means. NULL below three times.
 */
const efficiency = (of: (sum: string) => string, norm: (name: string) => string): string =>
  `if(${of('timed')} < 3, NULL, 50 * (1 + erf(0.5 * (
    ((${of('correct')} - ${of('predicted')}) / ${of('attempts')} - ${norm('surprise')}) / ${norm('surprise_sd')}
    - (${of('log_seconds')} / ${of('timed')} - ${norm('log_mean')}) / ${norm('log_sd')}))))`;

const ofWeek = efficiency(
  (sum) => `sum(w.${sum})`,
  (norm) => `any(n.${norm})`,
);
const ofLearner = efficiency(
  (sum) => `l.${sum}`,
  (norm) => `n.${norm}`,
);

export const cohortSkillWeekly: View = {
  name: 'cohort_skill_weekly',
  comment:
    'Velocity, accuracy and efficiency by skill of the learners who began in the same week, week by week',
  columns: columnsOf(`
    tenant LowCardinality(String) -- Owner of the learners
    cohort Date -- Monday of the UTC week in which the learners first answered anything
    skill_id LowCardinality(String) -- Skill
    week UInt32 -- Weeks since then; 0 is the first
    learners UInt64 -- Learners of the cohort who practised the skill in that week
    attempts UInt64 -- Their answers
    accuracy Float64 -- Share of correct ones
    velocity_per_attempt Float64
      -- Mean of mastery_after - mastery_before; on first answers it also finds out what a learner knew before
    velocity_per_active_day Float64 -- The same change, per day on which a learner practised the skill
    mean_mastery Float64 -- Mean over the learners of mastery after the week's last answer
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed work; NULL: no time
    efficiency_index Nullable(Float64)
      -- Accuracy beyond the prediction against time, 0 to 100; 50: as all learners of the skill; NULL: too few times
  `),
  query: `SELECT w.tenant AS tenant, f.cohort AS cohort, w.skill_id AS skill_id,
  intDiv(w.monday - f.cohort, 7) AS week,
  count() AS learners,
  sum(w.attempts) AS attempts,
  sum(w.correct) / sum(w.attempts) AS accuracy,
  sum(w.gain) / sum(w.attempts) AS velocity_per_attempt,
  sum(w.gain) / sum(w.active_days) AS velocity_per_active_day,
  avg(w.mastery) AS mean_mastery,
  if(sum(w.seconds) = 0, NULL, 60 * sum(w.timed_correct) / sum(w.seconds)) AS correct_per_minute,
  ${ofWeek} AS efficiency_index
FROM (
  SELECT tenant, user_id, skill_id, toMonday(r.day) AS monday, max(r.last_answer).3 AS mastery,
    ${sums}
  FROM daily_learner_skill AS r GROUP BY tenant, user_id, skill_id, monday
) AS w
JOIN (
  SELECT tenant, user_id, toMonday(min(r.day)) AS cohort FROM daily_learner_skill AS r GROUP BY tenant, user_id
) AS f ON f.tenant = w.tenant AND f.user_id = w.user_id
JOIN (
  ${norms}
) AS n ON n.tenant = w.tenant AND n.skill_id = w.skill_id
GROUP BY tenant, cohort, skill_id, week`,
};

const quartiles = (name: string, type: string, what: string): string => `
    ${name}_q1 ${type} -- First quartile over the learners of ${what}
    ${name}_median ${type} -- Median over the learners of ${what}
    ${name}_q3 ${type} -- Third quartile over the learners of ${what}`;

const efficiencyMeaning =
  'accuracy beyond the prediction against time, 0 to 100, 50: as all learners of the skill; three times needed';

const selectQuartiles = (name: string, of: string): string =>
  `quantileExactInclusive(0.25)(${of}) AS ${name}_q1,
  quantileExactInclusive(0.5)(${of}) AS ${name}_median,
  quantileExactInclusive(0.75)(${of}) AS ${name}_q3`;

export const skillVelocity: View = {
  name: 'skill_velocity',
  comment: 'How fast and how efficiently the learners of a skill learn, and how they differ',
  columns: columnsOf(`
    tenant LowCardinality(String) -- Owner of the learners
    skill_id LowCardinality(String) -- Skill
    learners UInt64 -- Learners who answered on the skill
    attempts UInt64 -- Their answers
    ${quartiles('velocity_per_attempt', 'Float64', 'the mean of mastery_after - mastery_before')}
    ${quartiles('velocity_per_active_day', 'Float64', 'the sum of mastery_after - mastery_before per day of practice')}
    ${quartiles('efficiency_index', 'Nullable(Float64)', efficiencyMeaning)}
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed work; NULL: no time
    plateau_share Float64 -- Share of the learners who were on a plateau on their last day with answers
  `),
  query: `SELECT l.tenant AS tenant, l.skill_id AS skill_id,
  count() AS learners,
  sum(l.attempts) AS attempts,
  ${selectQuartiles('velocity_per_attempt', 'l.gain / l.attempts')},
  ${selectQuartiles('velocity_per_active_day', 'l.gain / l.active_days')},
  ${selectQuartiles('efficiency_index', ofLearner)},
  if(sum(l.seconds) = 0, NULL, 60 * sum(l.timed_correct) / sum(l.seconds)) AS correct_per_minute,
  avg(l.on_plateau) AS plateau_share
FROM (
  SELECT tenant, user_id, skill_id,
    sum(r.plateau_attempts) > 0 AND maxIf(r.day, r.plateau_attempts > 0) = max(r.day) AS on_plateau,
    ${sums}
  FROM daily_learner_skill AS r GROUP BY tenant, user_id, skill_id
) AS l
JOIN (
  ${norms}
) AS n ON n.tenant = l.tenant AND n.skill_id = l.skill_id
GROUP BY tenant, skill_id`,
};
