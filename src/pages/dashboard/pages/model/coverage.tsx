import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { Coverage } from '../../../../client/types.js';
import { computeShareInterval } from '../../../../domain/base/prediction-metrics.js';
import type { Series } from '../../../../lab/report/marks.js';
import { computeSum } from '../../../../lists.js';
import { formatDecimal, formatPercent, formatPoints, formatRange, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type Band = Coverage['bands'][number];
type Level = 50 | 80 | 95;

const levels: readonly Level[] = [50, 80, 95];
const readCoverage = (band: Band, level: Level): number => band[`coverage_${level}`];

/** With fewer learners, results may be chance. */
const minLearners = 30;

const formatHistory = ({ history_from, history_to }: Band): string => formatRange(history_from, history_to);

export function CoveragePart({ horizon }: { horizon: string | undefined }) {
  const { api } = useViewer();
  const coverage = useLoad((signal) => api.coverage({ signal }), [api]);
  return (
    <Panel
      title="Forecasts"
      about="A forecast of the coming days promises that its interval holds: of 80 % intervals, 80 in 100. Here is how many held, once the days were over."
    >
      <Loaded load={coverage} subject="how forecasts held">
        {({ bands }) => <CoverageView bands={bands} horizon={horizon} />}
      </Loaded>
    </Panel>
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
        No forecast can be judged yet: one has to be served (open a learner), its days have to pass, and the
        learner has to answer at least ten times in them. <code>npm run demo</code> has some.
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
          {minLearners} learners: what they show may be chance. Their intervals say so.
        </p>
      )}
      <Chart
        title="Intervals that held, by the days ahead and the answers before"
        about="A short upright line is what was promised; a dot what held, with its 95 % interval by the number of learners (cases of one learner hang together). A dot left of its line: intervals are too narrow."
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
  return (
    <Stat
      label={`Of ${level} % intervals held`}
      value={formatPercent(held)}
      note={`${formatPoints(held - level / 100)} points, ${pluralize(cases, 'case')}`}
    >
      Promised: {level} %. A case is a learner's last forecast of a day, judged when its days were over and
      had at least ten answers. Below the promise forecasts are surer than they may be, above it more careful
      than they need be.
    </Stat>
  );
}

function BiasTile({ bands }: { bands: readonly Band[] }) {
  const bias = averageCases(bands, (band) => band.observed_share - band.expected_share);
  return (
    <Stat label="Right beyond the forecast" value={`${formatPoints(bias)} points`} note="mean of all cases">
      The share of answers that were right in those days, less the share that was foretold. Below 0 learners
      do worse than foretold: a fit on newer answers corrects that.
    </Stat>
  );
}

const series: Series = { '50 % promised': 'a', '80 % promised': 'c', '95 % promised': 'b' };

interface CoverageMark {
  readonly series: string;
  readonly history: string;
  readonly horizon: string;
  readonly promised: number;
  readonly held: number;
  readonly low: number;
  readonly high: number;
  readonly note: string;
}

function buildMarks(band: Band): CoverageMark[] {
  return levels.map((level) => {
    const held = readCoverage(band, level);
    const { low, high } = computeShareInterval(held, band.learners);
    return {
      series: `${level} % promised`,
      history: `${formatHistory(band)} answers`,
      horizon: `${band.forecast_days} days ahead`,
      ...{ promised: level / 100, held, low, high },
      note: `${level} % promised, ${formatPercent(held)} held: ${pluralize(band.cases, 'case')} of ${pluralize(band.learners, 'learner')}`,
    };
  });
}

function plotCoverage(bands: readonly Band[]): Plot.PlotOptions {
  const marks = bands.flatMap(buildMarks);
  const place = { fy: 'horizon', y: 'history', stroke: 'series' };
  return {
    ...{ marginLeft: 118, marginTop: 40, marginRight: 14 },
    x: { domain: [0, 1], label: 'held', tickFormat: '.0%', grid: true, ticks: 5 },
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
      Plot.dot(marks, { ...place, x: 'held', fill: 'series', r: 4, title: 'note' }),
    ],
  };
}

const formatShare = formatDecimal(3);
const field = createColumnBuilder<Band>();
const columns: Column<Band>[] = [
  field('Days ahead', 'forecast_days'),
  field('Answers before', formatHistory),
  field('Cases', 'cases'),
  field('Learners', 'learners'),
  field('Held of 50 %', 'coverage_50', { format: formatShare }),
  field('Held of 80 %', 'coverage_80', { format: formatShare }),
  field('Held of 95 %', 'coverage_95', { format: formatShare }),
  field('Width of 80 %', 'mean_width_80', {
    format: formatShare,
    about: 'Mean width of 80 % intervals, as a share of right answers',
  }),
  field('Foretold', 'expected_share', {
    format: formatShare,
    about: 'Mean share of right answers that was foretold',
  }),
  field('Came', 'observed_share', { format: formatShare, about: 'Mean share of right answers that came' }),
  field('Brier', 'brier', { format: formatShare }),
];
