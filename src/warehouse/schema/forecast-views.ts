/**
 * Served forecasts against what came: how often the intervals of the expected share of right answers held.
 *
 * Days are whole UTC days. A forecast counts answers of the days after the one on which it was made, up to that day
 * plus its horizon: those of its own day are left out, for the rollups do not say which of them came before it.
 */
import { columnsOf, type View } from '../clickhouse/table.js';
import { levels, servedForecasts, shownColumns } from './journal-tables.js';

/** A share of fewer answers says little about any forecast. */
const fewestAnswers = 10;

/** The columns once for each level. */
const perLevel = (column: string) =>
  levels.flatMap((level) =>
    columnsOf(column.replaceAll('LEVEL', `${level}`).replaceAll('SHARE', `${level / 100}`)),
  );
const served = (...names: string[]) => shownColumns(servedForecasts, ...names);
/** Of the columns of a served forecast, what it is scored by. */
const madeColumns = [
  'made_at',
  'learner_seq',
  'expected_share',
  'share_sd',
  ...levels.flatMap((level) => [`below_${level}`, `above_${level}`]),
];

/** The last forecast of each learner, day and horizon: who asks again and again does not count for more. */
const due = `SELECT tenant, user_id, toDate(f.made_at) AS made_day, forecast_days,
    argMax((${madeColumns.map((name) => `f.${name}`).join(', ')}), f.made_at) AS last
  FROM served_forecasts AS f
  WHERE made_day + forecast_days < toDate(now('UTC'))
  GROUP BY tenant, user_id, made_day, forecast_days`;

/**
 * Each learner's days with answers, as one row: joined by learners alone, a condition on tenant or learner reaches
 * the keys of both tables (EXPLAIN indexes = 1 shows it), which it does not through a join on days.
 */
const days = `SELECT tenant, user_id, groupArray((day, answers, correct)) AS days
  FROM (
    SELECT tenant, user_id, day, sum(r.attempts) AS answers, sum(r.correct) AS correct
    FROM daily_learner_skill AS r GROUP BY tenant, user_id, day
  ) GROUP BY tenant, user_id`;

const scored = `SELECT tenant, user_id, made_day, forecast_days, last AS made,
    arrayFilter(d -> d.1 > made_day AND d.1 <= made_day + forecast_days, days) AS inside,
    arraySum(d -> d.2, inside) AS answers, arraySum(d -> d.3, inside) AS correct
  FROM (${due}) AS f JOIN (${days}) AS d USING (tenant, user_id)
  WHERE answers >= ${fewestAnswers}`;

/** An end of an interval as a share: back from asin(sqrt(share)), which ends at 0 and pi / 2. */
const end = (distance: string): string =>
  `pow(sin(greatest(0, least(pi() / 2, asin(sqrt(expected_share)) ${distance} * spread))), 2)`;

export const forecastOutcomes: View = {
  name: 'forecast_outcomes',
  comment: `Forecasts whose days are over, with at least ${fewestAnswers} answers in them: the last one of each learner, UTC day and horizon`,
  columns: [
    ...served('tenant', 'user_id'),
    ...columnsOf('made_day Date -- UTC day on which it was made; answers count from the next one on'),
    ...served('forecast_days', 'made_at'),
    ...columnsOf("history UInt32 -- The learner's counted answers when it was made"),
    ...served('expected_share'),
    ...columnsOf(`
      answers UInt64 -- Answers from the day after made_day to made_day + forecast_days
      correct UInt64 -- Correct ones among them
      observed_share Float64 -- Share of correct answers among them
      z Float64
        -- Observed less expected on the scale asin(sqrt(share)), in standard deviations of what was to be expected
    `),
    ...perLevel('covered_LEVEL UInt8 -- 1 when the LEVEL % interval held, else 0'),
    ...perLevel('interval_width_LEVEL Float64 -- Width of the LEVEL % interval as a share, 0 to 1'),
    ...columnsOf(`
      squared_error Float64 -- Square of observed less expected share
      brier Float64 -- Mean of (expected_share - is_correct) squared over the answers; lower is better
    `),
  ],
  query: `SELECT tenant, user_id, made_day, forecast_days, made_at, learner_seq AS history, expected_share, answers, correct,
  correct / answers AS observed_share,
  (asin(sqrt(observed_share)) - asin(sqrt(expected_share))) / spread AS z,
  ${levels.map((level) => `z BETWEEN -below_${level} AND above_${level} AS covered_${level}`).join(', ')},
  ${levels.map((level) => `${end(`+ above_${level}`)} - ${end(`- below_${level}`)} AS interval_width_${level}`).join(',\n  ')},
  pow(observed_share - expected_share, 2) AS squared_error,
  observed_share * pow(1 - expected_share, 2) + (1 - observed_share) * pow(expected_share, 2) AS brier
FROM (
  SELECT tenant, user_id, made_day, forecast_days, answers, correct,
    ${madeColumns.map((name, i) => `made.${i + 1} AS ${name}`).join(', ')},
    sqrt(pow(share_sd, 2) + 1 / (4 * answers)) AS spread
  FROM (${scored}) AS s
)`,
};

/** The band that a history belongs to, and where it ends. */
const bandStart =
  'multiIf(history >= 500, 500, history >= 200, 200, history >= 100, 100, history >= 50, 50, history >= 20, 20, 1)';
const bandEnd = 'transform(history_from, [1, 20, 50, 100, 200], [19, 49, 99, 199, 499], NULL)';

export const forecastCoverage: View = {
  name: 'forecast_coverage',
  comment: 'How often the intervals of served forecasts held, by tenant, horizon and amount of history',
  columns: [
    ...served('tenant', 'forecast_days'),
    ...columnsOf(`
      history_from UInt32 -- Fewest answers that the band's learners had when the forecast was made
      history_to Nullable(UInt32) -- Most answers that they had; NULL: no bound
      cases UInt64 -- Forecasts: rows of forecast_outcomes
      learners UInt64 -- Different learners among them: cases of one learner are not independent
      answers UInt64 -- Answers that they were scored on; those in several horizons count in each
    `),
    ...perLevel('coverage_LEVEL Float64 -- Share of cases whose LEVEL % interval held; SHARE is right'),
    ...perLevel('mean_width_LEVEL Float64 -- Mean width of the LEVEL % interval as a share; less is sharper'),
    ...columnsOf(`
      expected_share Float64 -- Mean expected share of right answers
      observed_share Float64 -- Mean observed share
      mean_squared_error Float64 -- Mean square of observed less expected share
      brier Float64 -- Mean of brier, each forecast counting the same, as in a back-test; lower is better
    `),
  ],
  query: `SELECT tenant, forecast_days, toUInt32(${bandStart}) AS history_from, ${bandEnd} AS history_to,
  count() AS cases, uniqExact(user_id) AS learners, sum(o.answers) AS answers,
  ${levels.map((level) => `avg(o.covered_${level}) AS coverage_${level}`).join(', ')},
  ${levels.map((level) => `avg(o.interval_width_${level}) AS mean_width_${level}`).join(', ')},
  avg(o.expected_share) AS expected_share, avg(o.observed_share) AS observed_share,
  avg(o.squared_error) AS mean_squared_error, avg(o.brier) AS brier
FROM forecast_outcomes AS o GROUP BY tenant, forecast_days, history_from`,
};
