/** Views for analysts: forecasts whose days are over, and how often their intervals were right. */
import { parseColumns, type View } from '../clickhouse/ddl.js';
import { pickColumns } from './current-views.js';
import { intervalLevels, servedForecasts } from './journal-tables.js';
import { toLocalDate } from './local-days.js';

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
  ...['calibration_below', 'calibration_above', 'accuracy_cases'],
];

/**
 * The last forecast of each learner, local day and horizon. The rollups do not show which answers of its day
 * came later.
 */
const lastForecastsQuery = `SELECT f.tenant AS tenant, f.user_id AS user_id, ${toLocalDate('f.made_at')} AS made_day, forecast_days,
    argMax((${forecastColumns.map((name) => `f.${name}`).join(', ')}), f.made_at) AS last
  FROM served_forecasts AS f LEFT JOIN time_zones AS z ON z.tenant = f.tenant
  WHERE made_day + forecast_days < ${toLocalDate("now('UTC')")}
  GROUP BY tenant, user_id, made_day, forecast_days`;

/**
 * Only a join by learner passes a condition to the keys of both tables. An integer packs day (from bit 48),
 * answers (from bit 24) and correct answers. Tuples took up to twice the memory.
 */
const learnerDaysQuery = `SELECT tenant, user_id, groupArray(bitShiftLeft(toUInt64(day), 48) + counts) AS days
  FROM (
    SELECT tenant, user_id, day, sum(bitShiftLeft(toUInt64(r.attempts - r.further_attempts), 24) + r.correct - r.further_correct) AS counts
    FROM learner_sums AS r
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
const buildWidth = (level: number, prefix = ''): string =>
  `${buildIntervalEnd(`+ ${prefix}above_${level}`)} - ${buildIntervalEnd(`- ${prefix}below_${level}`)}`;
const buildCovered = (level: number, prefix = ''): string =>
  `z BETWEEN -${prefix}below_${level} AND ${prefix}above_${level}`;

const selectUncalibratedReach = (level: number): string =>
  `below_${level} / calibration_below AS uncalibrated_below_${level}, above_${level} / calibration_above AS uncalibrated_above_${level}`;
const selectLevels = (select: (level: number) => string): string => intervalLevels.map(select).join(',\n  ');

export const forecastOutcomes: View = {
  name: 'forecast_outcomes',
  comment: `Results of forecasts with a past horizon and at least ${minAnswers} answers: the last one of each learner, local day and horizon`,
  columns: [
    ...pickForecastColumns('tenant', 'user_id'),
    ...parseColumns('made_day Date -- Local day of the forecast; answers count from the next day on'),
    ...pickForecastColumns('forecast_days', 'made_at'),
    ...parseColumns('history UInt32 -- Counted answers of the learner at the time of the forecast'),
    ...pickForecastColumns('accuracy_cases', 'expected_share'),
    ...parseColumns(`
      answers UInt64 -- Answers from the day after made_day to made_day + forecast_days
      correct UInt64 -- Number of these answers that are correct
      observed_share Float64 -- Share of these answers that are correct
      z Float64
        -- Observed minus expected on the scale asin(sqrt(share)), in standard deviations of the prediction
      position Float64 -- z in units of the 80 % interval on its side before recalibration; -1 to 1: inside
    `),
    ...expandLevels('covered_LEVEL UInt8 -- 1 if the LEVEL % interval contains observed_share, else 0'),
    ...expandLevels('interval_width_LEVEL Float64 -- Width of the LEVEL % interval as a share, 0 to 1'),
    ...expandLevels('uncalibrated_covered_LEVEL UInt8 -- covered_LEVEL before recalibration'),
    ...parseColumns(`
      uncalibrated_interval_width_80 Float64 -- interval_width_80 before recalibration
      squared_error Float64 -- Square of observed minus expected share
      brier Float64 -- Mean of (expected_share - is_correct) squared over the answers; lower is better
    `),
  ],
  query: `SELECT tenant, user_id, made_day, forecast_days, made_at, learner_seq AS history, accuracy_cases,
  expected_share, answers, correct, correct / answers AS observed_share,
  (asin(sqrt(observed_share)) - asin(sqrt(expected_share))) / spread AS z,
  z / if(z < 0, uncalibrated_below_80, uncalibrated_above_80) AS position,
  ${selectLevels((level) => `${buildCovered(level)} AS covered_${level}`)},
  ${selectLevels((level) => `${buildWidth(level)} AS interval_width_${level}`)},
  ${selectLevels((level) => `${buildCovered(level, 'uncalibrated_')} AS uncalibrated_covered_${level}`)},
  ${buildWidth(80, 'uncalibrated_')} AS uncalibrated_interval_width_80,
  pow(observed_share - expected_share, 2) AS squared_error,
  observed_share * pow(1 - expected_share, 2) + (1 - observed_share) * pow(expected_share, 2) AS brier
FROM (
  SELECT tenant, user_id, made_day, forecast_days, answers, correct,
    ${forecastColumns.map((name, i) => `made.${i + 1} AS ${name}`).join(', ')},
    ${selectLevels(selectUncalibratedReach)},
    sqrt(pow(share_sd, 2) + 1 / (4 * answers)) AS spread
  FROM (${scoredForecastsQuery}) AS s
)`,
};

const bandStart =
  'multiIf(history >= 500, 500, history >= 200, 200, history >= 100, 100, history >= 50, 50, history >= 20, 20, 1)';
const bandEnd = 'transform(history_from, [1, 20, 50, 100, 200], [19, 49, 99, 199, 499], NULL)';

/** @param condition WHERE clause on rows of forecast_outcomes */
export const buildCoverageQuery = (
  condition = '',
): string => `SELECT tenant, forecast_days, toUInt32(${bandStart}) AS history_from, ${bandEnd} AS history_to,
  count() AS cases, uniqExact(user_id) AS learners, sum(o.answers) AS answers,
  ${selectLevels((level) => `avg(o.covered_${level}) AS coverage_${level}`)},
  ${selectLevels((level) => `avg(o.interval_width_${level}) AS mean_width_${level}`)},
  ${selectLevels((level) => `avg(o.uncalibrated_covered_${level}) AS uncalibrated_coverage_${level}`)},
  avg(o.uncalibrated_interval_width_80) AS uncalibrated_mean_width_80,
  avg(o.expected_share) AS expected_share, avg(o.observed_share) AS observed_share,
  avg(o.squared_error) AS mean_squared_error, avg(o.brier) AS brier
FROM forecast_outcomes AS o ${condition}
GROUP BY tenant, forecast_days, history_from`;

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
    ...expandLevels('uncalibrated_coverage_LEVEL Float64 -- coverage_LEVEL before recalibration'),
    ...parseColumns(`
      uncalibrated_mean_width_80 Float64 -- mean_width_80 before recalibration
      expected_share Float64 -- Mean expected share of correct answers
      observed_share Float64 -- Mean observed share
      mean_squared_error Float64 -- Mean square of observed minus expected share
      brier Float64 -- Mean of brier with equal weights for all forecasts, as in a backtest; lower is better
    `),
  ],
  query: buildCoverageQuery(),
};
