/**
 * Views for analysts. They read daily sums, to stay fast with any number of answers. They repeat model
 * constants, because a released view is never edited.
 */
import { type Column, parseColumns, type Table, type View } from '../clickhouse/ddl.js';
import {
  catalogueColumns,
  goalChanges,
  intervalLevels,
  servedForecasts,
  skillChanges,
} from './journal-tables.js';
import { buildSums, skillSums, unpackAnswer } from './rollups.js';

const pickColumns = ({ columns }: Table, ...names: string[]): Column[] =>
  columns
    .filter((column) => names.length === 0 || names.includes(column.name))
    .map(({ codec: _, ...column }) => column);

/** Repeated rows are equal, and `updated_at` grows with every change. */
export const goals: View = {
  name: 'goals',
  comment: 'Current goals of learners',
  columns: [
    ...pickColumns(goalChanges, 'tenant', 'user_id'),
    { name: 'target_score', type: 'UInt16', comment: 'Total score to reach, 400 to 1600' },
    ...pickColumns(goalChanges, 'target_date', 'updated_at'),
  ],
  query: `SELECT tenant, user_id, assumeNotNull(last.1) AS target_score, last.2 AS target_date, last_at AS updated_at
FROM (
  SELECT tenant, user_id, argMax((target_score, target_date), updated_at) AS last, max(updated_at) AS last_at
  FROM goal_changes GROUP BY tenant, user_id
) WHERE last.1 IS NOT NULL`,
};

const entryColumns = ['updated_at', ...catalogueColumns.map(({ name }) => name)];

export const skillCatalogue: View = {
  name: 'skill_catalogue',
  comment: "Current entries of a tenant's catalogue",
  columns: pickColumns(skillChanges),
  query: `SELECT tenant, skill_id, last.${entryColumns.length + 1} AS revision, ${entryColumns.map((name, i) => `last.${i + 1} AS ${name}`).join(', ')}
FROM (
  SELECT tenant, skill_id, argMax((${entryColumns.join(', ')}, revision), (updated_at, revision)) AS last
  FROM skill_changes GROUP BY tenant, skill_id
) WHERE weight > 0`,
};

export const forecasts: View = {
  name: 'forecasts',
  comment: 'Served forecasts, each once',
  columns: pickColumns(servedForecasts),
  query: `SELECT ${servedForecasts.columns.map(({ name }) => name).join(', ')} FROM served_forecasts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1`,
};

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
  comment: 'Velocity, accuracy and efficiency by skill and week, for learners who began in the same week',
  columns: parseColumns(`
    tenant LowCardinality(String) -- Owner of the learners
    cohort Date -- Monday of the UTC week of the learners' first answers
    skill_id LowCardinality(String) -- Skill
    week UInt32 -- Weeks since the cohort began; 0 is the first
    learners UInt64
      -- Learners of the cohort who practised the skill in that week; above 65,536, an estimate within about 0.5 %
    attempts UInt64 -- Answers of these learners
    accuracy Float64 -- Share of correct answers
    velocity_per_attempt Float64
      -- Mean of mastery_after - mastery_before; first answers also measure prior knowledge
    velocity_per_active_day Float64
      -- Sum of mastery_after - mastery_before per day on which a learner practised the skill
    mean_mastery Float64 -- Mean over these days of mastery after the learner's last answer of the day
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed answers; NULL: no times
    efficiency_index Nullable(Float64)
      -- Accuracy and time compared with the norms of the skill, 0 to 100; 50: usual; NULL: too few times
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
  'accuracy and time compared with the norms of the skill, 0 to 100, 50: usual; requires three times';

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
    correct_per_minute Nullable(Float64) -- Correct answers per minute of timed answers; NULL: no times
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

const minAnswers = 10;

const expandLevels = (column: string) =>
  intervalLevels.flatMap((level) =>
    parseColumns(column.replaceAll('LEVEL', `${level}`).replaceAll('SHARE', `${level / 100}`)),
  );
const pickForecastColumns = (...names: string[]) => pickColumns(servedForecasts, ...names);
const forecastColumns = [
  'made_at',
  'learner_seq',
  'expected_share',
  'share_sd',
  ...intervalLevels.flatMap((level) => [`below_${level}`, `above_${level}`]),
];

/**
 * The last forecast of each learner, UTC day and horizon. The rollups do not show which answers of its day
 * came later.
 */
const lastForecastsQuery = `SELECT tenant, user_id, toDate(f.made_at) AS made_day, forecast_days,
    argMax((${forecastColumns.map((name) => `f.${name}`).join(', ')}), f.made_at) AS last
  FROM served_forecasts AS f
  WHERE made_day + forecast_days < toDate(now('UTC'))
  GROUP BY tenant, user_id, made_day, forecast_days`;

/**
 * Only a join by learner passes a condition to the keys of both tables. An integer packs day (from bit 48),
 * answers (from bit 24) and correct answers. Tuples took up to twice the memory.
 */
const learnerDaysQuery = `SELECT tenant, user_id, groupArray(bitShiftLeft(toUInt64(day), 48) + counts) AS days
  FROM (
    SELECT tenant, user_id, day, sum(bitShiftLeft(toUInt64(r.attempts), 24) + r.correct) AS counts FROM learner_sums AS r
    WHERE kind = 'day' AND (tenant, user_id) IN (SELECT tenant, user_id FROM served_forecasts)
    GROUP BY tenant, user_id, day
  ) GROUP BY tenant, user_id`;

/** No overflow: a learner has fewer than 2^24 answers in 365 days. */
const scoredForecastsQuery = `SELECT tenant, user_id, made_day, forecast_days, last AS made,
    arraySum(d -> if(bitShiftRight(d, 48) - toUInt16(made_day) BETWEEN 1 AND forecast_days, bitAnd(d, 0xFFFFFFFFFFFF), 0), days)
      AS inside,
    bitShiftRight(inside, 24) AS answers, bitAnd(inside, 0xFFFFFF) AS correct
  FROM (${lastForecastsQuery}) AS f JOIN (${learnerDaysQuery}) AS d USING (tenant, user_id)
  WHERE answers >= ${minAnswers}`;

/** Converts back from asin(sqrt(share)), which ranges from 0 to pi / 2. */
const buildIntervalEnd = (distance: string): string =>
  `pow(sin(greatest(0, least(pi() / 2, asin(sqrt(expected_share)) ${distance} * spread))), 2)`;

export const forecastOutcomes: View = {
  name: 'forecast_outcomes',
  comment: `Results of forecasts with a past horizon and at least ${minAnswers} answers: the last one of each learner, UTC day and horizon`,
  columns: [
    ...pickForecastColumns('tenant', 'user_id'),
    ...parseColumns('made_day Date -- UTC day of the forecast; answers count from the next day on'),
    ...pickForecastColumns('forecast_days', 'made_at'),
    ...parseColumns('history UInt32 -- Counted answers of the learner at the time of the forecast'),
    ...pickForecastColumns('expected_share'),
    ...parseColumns(`
      answers UInt64 -- Answers from the day after made_day to made_day + forecast_days
      correct UInt64 -- Number of these answers that are correct
      observed_share Float64 -- Share of these answers that are correct
      z Float64
        -- Observed minus expected on the scale asin(sqrt(share)), in standard deviations of the prediction
    `),
    ...expandLevels('covered_LEVEL UInt8 -- 1 if the LEVEL % interval contains observed_share, else 0'),
    ...expandLevels('interval_width_LEVEL Float64 -- Width of the LEVEL % interval as a share, 0 to 1'),
    ...parseColumns(`
      squared_error Float64 -- Square of observed minus expected share
      brier Float64 -- Mean of (expected_share - is_correct) squared over the answers; lower is better
    `),
  ],
  query: `SELECT tenant, user_id, made_day, forecast_days, made_at, learner_seq AS history, expected_share, answers, correct,
  correct / answers AS observed_share,
  (asin(sqrt(observed_share)) - asin(sqrt(expected_share))) / spread AS z,
  ${intervalLevels.map((level) => `z BETWEEN -below_${level} AND above_${level} AS covered_${level}`).join(', ')},
  ${intervalLevels.map((level) => `${buildIntervalEnd(`+ above_${level}`)} - ${buildIntervalEnd(`- below_${level}`)} AS interval_width_${level}`).join(',\n  ')},
  pow(observed_share - expected_share, 2) AS squared_error,
  observed_share * pow(1 - expected_share, 2) + (1 - observed_share) * pow(expected_share, 2) AS brier
FROM (
  SELECT tenant, user_id, made_day, forecast_days, answers, correct,
    ${forecastColumns.map((name, i) => `made.${i + 1} AS ${name}`).join(', ')},
    sqrt(pow(share_sd, 2) + 1 / (4 * answers)) AS spread
  FROM (${scoredForecastsQuery}) AS s
)`,
};

const bandStart =
  'multiIf(history >= 500, 500, history >= 200, 200, history >= 100, 100, history >= 50, 50, history >= 20, 20, 1)';
const bandEnd = 'transform(history_from, [1, 20, 50, 100, 200], [19, 49, 99, 199, 499], NULL)';

export const forecastCoverage: View = {
  name: 'forecast_coverage',
  comment: 'Coverage of the intervals of served forecasts, by tenant, horizon and amount of history',
  columns: [
    ...pickForecastColumns('tenant', 'forecast_days'),
    ...parseColumns(`
      history_from UInt32 -- Fewest answers of a learner in the band at the time of the forecast
      history_to Nullable(UInt32) -- Most answers of a learner in the band; NULL: no limit
      cases UInt64 -- Number of forecasts in forecast_outcomes
      learners UInt64 -- Number of different learners; cases of one learner are not independent
      answers UInt64 -- Answers that the forecasts are compared with; an answer counts once per forecast
    `),
    ...expandLevels(
      'coverage_LEVEL Float64 -- Share of cases in which the LEVEL % interval contains the observed share; ideal: SHARE',
    ),
    ...expandLevels(
      'mean_width_LEVEL Float64 -- Mean width of the LEVEL % interval as a share; lower is sharper',
    ),
    ...parseColumns(`
      expected_share Float64 -- Mean expected share of correct answers
      observed_share Float64 -- Mean observed share
      mean_squared_error Float64 -- Mean square of observed minus expected share
      brier Float64 -- Mean of brier with equal weights for all forecasts, as in a backtest; lower is better
    `),
  ],
  query: `SELECT tenant, forecast_days, toUInt32(${bandStart}) AS history_from, ${bandEnd} AS history_to,
  count() AS cases, uniqExact(user_id) AS learners, sum(o.answers) AS answers,
  ${intervalLevels.map((level) => `avg(o.covered_${level}) AS coverage_${level}`).join(', ')},
  ${intervalLevels.map((level) => `avg(o.interval_width_${level}) AS mean_width_${level}`).join(', ')},
  avg(o.expected_share) AS expected_share, avg(o.observed_share) AS observed_share,
  avg(o.squared_error) AS mean_squared_error, avg(o.brier) AS brier
FROM forecast_outcomes AS o GROUP BY tenant, forecast_days, history_from`,
};
