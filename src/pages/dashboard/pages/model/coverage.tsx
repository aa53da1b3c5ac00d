import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { Coverage } from '../../../../client/types.js';
import { computeShareInterval } from '../../../../domain/base/prediction-metrics.js';
import type { Series } from '../../../../lab/report/marks.js';
import { computeSum } from '../../../../lists.js';
import {
  formatDay,
  formatDecimal,
  formatPercent,
  formatPoints,
  formatRange,
  pluralize,
} from '../../base/format.js';
import type { LoadState } from '../../base/load.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type Band = Coverage['bands'][number];
type Level = 50 | 80 | 95;

const levels: readonly Level[] = [50, 80, 95];
const readCoverage = (band: Band, level: Level): number => band[`coverage_${level}`];
const readUncalibrated = (band: Band, level: Level): number => band[`uncalibrated_coverage_${level}`];

/** With fewer learners, results may be chance. */
const minLearners = 30;

const formatHistory = ({ history_from, history_to }: Band): string => formatRange(history_from, history_to);

interface CoveragePartProps {
  readonly coverage: LoadState<Coverage>;
  readonly horizon: string | undefined;
}

export function CoveragePart({ coverage, horizon }: CoveragePartProps) {
  return (
    <Panel
      title="Forecasts"
      about="An 80 % interval should contain the result in 80 of 100 forecasts. This section compares past forecasts with their results in the period."
    >
      <Loaded load={coverage} subject="forecast results">
        {(loaded) => (
          <>
            <CalibrationNote {...loaded} />
            <CoverageView bands={loaded.bands} horizon={horizon} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function CalibrationNote({ calibration, calibration_reason }: Coverage) {
  if (calibration === null) return <p>Intervals are not recalibrated. {calibration_reason}</p>;
  const { calibrated_at, outcomes, learners } = calibration;
  return (
    <p>
      Intervals were recalibrated on {formatDay(calibrated_at)} from the results of{' '}
      {pluralize(outcomes, 'forecast')} of {pluralize(learners, 'learner')}.
    </p>
  );
}

function CoverageView({ bands, horizon }: { bands: readonly Band[]; horizon: string | undefined }) {
  const horizons = [...new Set(bands.map(({ forecast_days }) => forecast_days))];
  const chosen = horizons.find((days) => `${days}` === horizon) ?? null;
  const rows = useMemo(
    () => bands.filter(({ forecast_days }) => chosen === null || forecast_days === chosen),
    [bands, chosen],
  );
  if (bands.length === 0)
    return (
      <p class="soft">
        No forecasts with results in this period. Open a learner to create a forecast. It counts when its days
        have passed and the learner gave at least 10 answers in them. <code>npm run demo</code> includes past
        forecasts.
      </p>
    );
  const few = rows.filter(({ learners }) => learners < minLearners);
  return (
    <>
      <Stats>
        {levels.map((level) => (
          <CoverageTile key={level} level={level} bands={rows} />
        ))}
        <BiasTile bands={rows} />
      </Stats>
      {horizons.length > 1 && (
        <QuerySelect
          label="Days ahead"
          parameter="horizon"
          value={chosen ?? ''}
          options={[['', 'all'], ...horizons.map((days) => [days, days] as const)]}
        />
      )}
      {few.length > 0 && (
        <p class="soft">
          {few.length} of {pluralize(rows.length, 'row')} {few.length === 1 ? 'has' : 'have'} fewer than{' '}
          {minLearners} learners. Their results may be chance.
        </p>
      )}
      <Chart
        title="Calibrated ranges, by days ahead and earlier answers"
        about="Short vertical line: nominal level. Dot: observed share with its 95 % interval, which depends on the number of learners. Ring: the same forecasts before recalibration, if it changed the share. A dot to the left of its line means that the forecast intervals are too narrow."
        series={series}
        plot={plotCoverage}
        rows={rows}
        columns={columns}
        height={60 + 34 * rows.length + 24 * (chosen === null ? horizons.length : 1)}
      />
    </>
  );
}

const sumBands = (bands: readonly Band[], value: (band: Band) => number): number =>
  computeSum(bands.map(value));

const averageCases = (bands: readonly Band[], value: (band: Band) => number): number =>
  sumBands(bands, (band) => band.cases * value(band)) / sumBands(bands, ({ cases }) => cases);

function CoverageTile({ level, bands }: { level: Level; bands: readonly Band[] }) {
  const cases = sumBands(bands, (band) => band.cases);
  const held = averageCases(bands, (band) => readCoverage(band, level));
  const before = formatPercent(averageCases(bands, (band) => readUncalibrated(band, level)));
  return (
    <Stat
      label={`Inside ${level} % interval`}
      value={formatPercent(held)}
      note={`${formatPoints(held - level / 100)} points, ${pluralize(cases, 'case')}; ${before} before recalibration`}
    >
      Nominal: {level} %. A case is a learner's last forecast of a day, if the following days had at least 10
      answers. Below the nominal level, intervals are too narrow. Above it, they are too wide.
    </Stat>
  );
}

function BiasTile({ bands }: { bands: readonly Band[] }) {
  const bias = averageCases(bands, (band) => band.observed_share - band.expected_share);
  return (
    <Stat label="Forecast error" value={`${formatPoints(bias)} points`} note="mean of all cases">
      Observed share of correct answers minus forecast share. Below 0, learners do worse than forecast. A fit
      on newer answers corrects this.
    </Stat>
  );
}

const series: Series = { '50 % interval': 'a', '80 % interval': 'c', '95 % interval': 'b' };

interface CoverageMark {
  readonly series: string;
  readonly history: string;
  readonly horizon: string;
  readonly promised: number;
  readonly held: number;
  readonly before: number;
  readonly low: number;
  readonly high: number;
  readonly note: string;
}

function buildMarks(band: Band): CoverageMark[] {
  return levels.map((level) => {
    const held = readCoverage(band, level);
    const before = readUncalibrated(band, level);
    const { low, high } = computeShareInterval(held, band.learners);
    return {
      series: `${level} % interval`,
      history: `${formatHistory(band)} answers`,
      horizon: `${band.forecast_days} days ahead`,
      ...{ promised: level / 100, held, before, low, high },
      note: `${level} % interval, ${formatPercent(held)} observed, ${formatPercent(before)} before recalibration: ${pluralize(band.cases, 'case')} of ${pluralize(band.learners, 'learner')}`,
    };
  });
}

function plotCoverage(bands: readonly Band[]): Plot.PlotOptions {
  const marks = bands.flatMap(buildMarks);
  const place = { fy: 'horizon', y: 'history', stroke: 'series' };
  return {
    ...{ marginLeft: 128, marginTop: 40, marginRight: 14 },
    x: { domain: [0, 1], label: 'observed share', tickFormat: '.0%', grid: true, ticks: 5 },
    y: { label: null, domain: [...new Set(marks.map(({ history }) => history))] },
    fy: { label: null, domain: [...new Set(marks.map(({ horizon }) => horizon))], axis: null, padding: 0.12 },
    marks: [
      Plot.frame({ stroke: 'var(--line)' }),
      Plot.text(
        marks,
        Plot.selectFirst({
          fy: 'horizon',
          z: 'horizon',
          text: 'horizon',
          frameAnchor: 'top-left',
          dx: 6,
          dy: -14,
          fontWeight: 600,
          fill: 'var(--text)',
        }),
      ),
      Plot.tickX(marks, { ...place, x: 'promised', strokeWidth: 2 }),
      Plot.ruleY(marks, { ...place, x1: 'low', x2: 'high', strokeOpacity: 0.55, strokeWidth: 1.5 }),
      Plot.dot(
        marks.filter(({ held, before }) => held !== before),
        { ...place, x: 'before', fill: 'var(--panel)', r: 4, title: 'note' },
      ),
      Plot.dot(marks, { ...place, x: 'held', fill: 'series', r: 4, title: 'note' }),
    ],
  };
}

const formatShare = formatDecimal(3);
const field = createColumnBuilder<Band>();
const columns: Column<Band>[] = [
  field('Days ahead', 'forecast_days'),
  field('Earlier answers', formatHistory),
  field('Cases', 'cases'),
  field('Learners', 'learners'),
  field('Inside 50 %', 'coverage_50', { format: formatShare }),
  field('Inside 80 %', 'coverage_80', { format: formatShare }),
  field('Inside 95 %', 'coverage_95', { format: formatShare }),
  field('Inside 80 % before', 'uncalibrated_coverage_80', {
    format: formatShare,
    about: 'The same forecasts before recalibration',
  }),
  field('Width of 80 %', 'mean_width_80', {
    format: formatShare,
    about: 'Mean width of 80 % intervals, as a share of correct answers',
  }),
  field('Width before', 'uncalibrated_mean_width_80', {
    format: formatShare,
    about: 'Mean width of 80 % intervals before recalibration',
  }),
  field('Forecast', 'expected_share', {
    format: formatShare,
    about: 'Mean forecast share of correct answers',
  }),
  field('Observed', 'observed_share', {
    format: formatShare,
    about: 'Mean observed share of correct answers',
  }),
  field('Brier', 'brier', { format: formatShare }),
];
