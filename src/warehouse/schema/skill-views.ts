/**
 * Views for analysts of skills. They read daily sums, to stay fast with any number of answers. They repeat model
 * constants, because a released view is never edited.
 */
import { parseColumns, type View } from '../clickhouse/ddl.js';
import { buildSums, skillSums, unpackAnswer } from './rollups.js';

const correctForGuessing = (share: string): string => `greatest(0, ((${share}) - 0.2) / 0.8)`;

/** Prior: 20 answers with 75 % correct, ln 75 s = 4.317488, standard deviation 0.6. */
const normsQuery = `SELECT tenant, skill_id, 20 + sum(r.timed_attempts) AS weight,
    ${correctForGuessing('(20 * 0.75 + sum(r.timed_correct)) / weight')} AS known,
    (20 * 4.317488 + sum(r.log_seconds)) / weight AS log_mean,
    sqrt(greatest((20 * (0.36 + pow(4.317488, 2)) + sum(r.log_seconds_squared)) / weight - pow(log_mean, 2), 0.04)) AS log_sd
  FROM daily_skill AS r GROUP BY tenant, skill_id`;

/**
 * Like src/domain/tracing/response-times.ts, but with rapid answers, and with limits on the mean of ln(seconds). NULL
 * below three times.
 */
const buildEfficiency = (alias: string): string => {
  const known = correctForGuessing(`${alias}.timed_correct / ${alias}.timed_attempts`);
  const slowness = `greatest(-1.5, least(1.5, (${alias}.log_seconds / ${alias}.timed_attempts - n.log_mean) / n.log_sd))`;
  return `if(${alias}.timed_attempts < 3, NULL, 50 * (1 + erf(
    ((${known} - n.known) / 0.5 - 0.6 * ${known} * ${slowness}) / sqrt(2 * (1 + 0.6 * 0.6)))))`;
};

export const cohortSkillWeekly: View = {
  name: 'cohort_skill_weekly',
  comment: 'Velocity, accuracy and efficiency by skill and week, for learners who started in the same week',
  columns: parseColumns(`
    tenant LowCardinality(String) -- Owner of the learners
    cohort Date -- Monday of the ISO week (local days) of the learners' first answers
    skill_id LowCardinality(String) -- Skill
    week UInt32 -- Weeks since the cohort started; 0 is the first
    learners UInt64
      -- Learners of the cohort who practised the skill in that week; above 65,536, an estimate within about 0.5 %
    attempts UInt64 -- Answers of these learners
    accuracy Float64 -- Share of correct answers
    velocity_per_attempt Float64
      -- Mean of mastery_after - mastery_before; first answers also measure prior knowledge
    velocity_per_active_day Float64
      -- Sum of mastery_after - mastery_before per day on which a learner practised the skill
    mean_mastery Float64 -- Mean over these days of mastery after the learner's last answer of the day
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed answers; NULL: no timed answers
    efficiency_index Nullable(Float64)
      -- Accuracy and time compared with the norms of the skill, 0 to 100; 50: typical; NULL: fewer than three timed answers
  `),
  // Reads days, because sums by learner and week would be nearly as many rows.
  query: `SELECT w.tenant AS tenant, w.cohort AS cohort, w.skill_id AS skill_id, w.week AS week, w.learners AS learners,
  w.attempts AS attempts,
  w.correct / w.attempts AS accuracy,
  w.mastery_gain / w.attempts AS velocity_per_attempt,
  w.mastery_gain / w.active_days AS velocity_per_active_day,
  w.mean_mastery AS mean_mastery,
  if(w.timed_seconds = 0, NULL, 60 * w.timed_correct / w.timed_seconds) AS correct_per_minute,
  ${buildEfficiency('w')} AS efficiency_index
FROM (
  SELECT d.tenant AS tenant, f.cohort AS cohort, d.skill_id AS skill_id,
    toUInt32(intDiv(toMonday(d.day) - f.cohort, 7)) AS week,
    uniq(d.user_id) AS learners, count() AS active_days, avg(${unpackAnswer('d.last_answer').mastery}) AS mean_mastery,
    ${buildSums('d', skillSums)}
  FROM learner_sums AS d FINAL
  JOIN (
    SELECT tenant, user_id, toMonday(min(arrayMin(r.days))) AS cohort FROM learner_sums AS r WHERE r.kind = 'total'
    GROUP BY tenant, user_id
  ) AS f ON f.tenant = d.tenant AND f.user_id = d.user_id
  WHERE d.kind = 'day'
  GROUP BY tenant, cohort, skill_id, week
) AS w
JOIN (
  ${normsQuery}
) AS n ON n.tenant = w.tenant AND n.skill_id = w.skill_id`,
};

const buildQuartileColumns = (name: string, type: string, meaning: string): string => `
    ${name}_q1 ${type} -- First quartile over the learners of ${meaning}
    ${name}_median ${type} -- Median over the learners of ${meaning}
    ${name}_q3 ${type} -- Third quartile over the learners of ${meaning}`;

const efficiencyMeaning =
  'accuracy and time compared with the norms of the skill, 0 to 100, 50: typical; only learners with three timed answers';

const selectQuartiles = (name: string, nullCondition?: string): string =>
  ['q1', 'median', 'q3']
    .map((quartile, i) => [`${name}[${i + 1}]`, `${name}_${quartile}`] as const)
    .map(([one, as]) =>
      nullCondition === undefined ? `${one} AS ${as}` : `if(${nullCondition}, NULL, ${one}) AS ${as}`,
    )
    .join(', ');
const quartileAggregate = 'quantilesExactInclusive(0.25, 0.5, 0.75)';

export const skillVelocity: View = {
  name: 'skill_velocity',
  comment: 'Velocity and efficiency of learning by skill, with quartiles over the learners',
  columns: parseColumns(`
    tenant LowCardinality(String) -- Owner of the learners
    skill_id LowCardinality(String) -- Skill
    learners UInt64 -- Learners who answered on the skill
    attempts UInt64 -- Answers of these learners
    ${buildQuartileColumns('velocity_per_attempt', 'Float64', 'the mean of mastery_after - mastery_before')}
    ${buildQuartileColumns('velocity_per_active_day', 'Float64', 'the sum of mastery_after - mastery_before per day of practice')}
    ${buildQuartileColumns('efficiency_index', 'Nullable(Float64)', efficiencyMeaning)}
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed answers; NULL: no timed answers
    plateau_share Float64 -- Share of the learners who were on a plateau on their last day with answers
  `),
  query: `SELECT tenant, skill_id, learners, attempts,
  ${selectQuartiles('velocity_per_attempt')},
  ${selectQuartiles('velocity_per_active_day')},
  ${selectQuartiles('efficiency_index', 'timed_learners = 0')},
  correct_per_minute, plateau_share
FROM (
  SELECT l.tenant AS tenant, l.skill_id AS skill_id,
    count() AS learners,
    sum(l.attempts) AS attempts,
    ${quartileAggregate}(l.mastery_gain / l.attempts) AS velocity_per_attempt,
    ${quartileAggregate}(l.mastery_gain / length(l.days)) AS velocity_per_active_day,
    ${quartileAggregate}(${buildEfficiency('l')}) AS efficiency_index,
    countIf(l.timed_attempts >= 3) AS timed_learners,
    if(sum(l.timed_seconds) = 0, NULL, 60 * sum(l.timed_correct) / sum(l.timed_seconds)) AS correct_per_minute,
    avg(l.plateau_day = arrayMax(l.days)) AS plateau_share
  FROM learner_sums AS l FINAL
  JOIN (
    ${normsQuery}
  ) AS n ON n.tenant = l.tenant AND n.skill_id = l.skill_id
  WHERE l.kind = 'total'
  GROUP BY tenant, skill_id
)`,
};
