import * as Plot from '@observablehq/plot';
import type { Reliability } from '../../../../client/types.js';
import { diagonalMark } from '../../../../lab/report/marks.js';
import {
  formatDecimal,
  formatFinePoints,
  formatInteger,
  formatNumber,
  formatPercent,
  pluralize,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type Bin = Reliability['bins'][number];

interface ReliabilityProps {
  readonly days: number;
  readonly skill: string | undefined;
}

export function ReliabilityPart({ days, skill }: ReliabilityProps) {
  const { api } = useViewer();
  const reliability = useLoad(
    (signal) => api.reliability({ days, skill_id: skill, signal }),
    [api, days, skill],
  );
  const skills = useLoad((signal) => api.skills({ limit: 1000, signal }), [api]);
  const listed = (skills.data?.skills ?? []).map(
    ({ skill_id, name }) => [skill_id, name ?? skill_id] as const,
  );
  const isListed = listed.some(([id]) => id === skill);
  const unlisted = skill === undefined || isListed ? [] : [[skill, skill] as const];
  return (
    <Panel
      title="Predictions of answers"
      about="Before each answer, the service predicts the probability that it is correct. This section compares predictions with results."
    >
      <div class="row">
        <QuerySelect
          label="Skill"
          parameter="skill"
          value={skill ?? ''}
          options={[['', 'all'], ...unlisted, ...listed]}
        />
      </div>
      <Loaded load={reliability} subject="the reliability of predictions">
        {(data) => <ReliabilityView data={data} />}
      </Loaded>
    </Panel>
  );
}

function ReliabilityView({ data }: { data: Reliability }) {
  if (data.answers === 0)
    return (
      <p class="soft">
        No answers in this period. Choose a longer period, post answers, or run <code>npm run demo</code>.
      </p>
    );
  return (
    <div class="side-by-side">
      <Chart
        title="Reliability of predictions"
        about="Dots on the dashed line are calibrated. Above the line, more answers were correct than predicted. Vertical lines: 95 % intervals. Bars: number of answers."
        plot={plotReliability}
        rows={data.bins}
        columns={columns}
        height={400}
      />
      <Stats>
        <ReliabilityTiles data={data} />
      </Stats>
    </div>
  );
}

function ReliabilityTiles({
  data: { days, answers, accuracy, mean_p_correct, log_loss, brier, bins },
}: {
  data: Reliability;
}) {
  const bias = accuracy === null || mean_p_correct === null ? null : accuracy - mean_p_correct;
  const calibratedBins = bins.filter(
    ({ p_correct, low, high }) => low <= p_correct && p_correct <= high,
  ).length;
  return (
    <>
      <Stat label="Answers" value={formatInteger(answers)} note={`last ${pluralize(days, 'day')}`}>
        Stored answers with the prediction that was served before them.
      </Stat>
      <Stat
        label="Correct / predicted"
        value={`${formatPercent(accuracy)} / ${formatPercent(mean_p_correct)}`}
        note={`${formatFinePoints(bias)} points`}
      >
        Share of correct answers and mean prediction. A large difference means that predictions are too low or
        too high overall. A fit corrects this.
      </Stat>
      <Stat
        label="Calibrated bins"
        value={`${calibratedBins} of ${bins.length}`}
        note="within their 95 % intervals"
      >
        Bins of predictions with a mean inside the 95 % interval of the results. With many thousand answers,
        the intervals are narrow and show even small errors. Then compare the distance between dots and line.
      </Stat>
      <Stat label="Log loss" value={formatDecimal(3)(log_loss)} note="lower is better">
        Mean negative logarithm of the probability that was predicted for the actual result. 0.693 is as good
        as a coin toss.
      </Stat>
      <Stat label="Brier score" value={formatDecimal(3)(brier)} note="lower is better">
        Mean of (prediction − result)². 0 is perfect, 0.25 is as good as a coin toss.
      </Stat>
    </>
  );
}

/** Share of the chart height. */
const barShare = 0.2;

function plotReliability(bins: readonly Bin[]): Plot.PlotOptions {
  const most = Math.max(...bins.map(({ answers }) => answers));
  const note = ({ from, to, answers, accuracy, low, high }: Bin): string =>
    `${formatPercent(from)} to ${formatPercent(to)}: ${formatPercent(accuracy)} correct (${formatPercent(low)} to ${formatPercent(high)}), ${pluralize(answers, 'answer')}`;
  return {
    x: { domain: [0, 1], label: 'predicted', tickFormat: '.0%', ticks: 5 },
    y: {
      domain: [-barShare, 1],
      label: 'correct',
      grid: true,
      tickFormat: '.0%',
      ticks: [0, 0.2, 0.4, 0.6, 0.8, 1],
    },
    marks: [
      Plot.rect(bins, {
        ...{
          x1: 'from',
          x2: 'to',
          y1: -barShare,
          y2: ({ answers }: Bin) => 0.9 * barShare * (answers / most) - barShare,
        },
        ...{ fill: 'var(--bar)', inset: 1, title: note },
      }),
      Plot.ruleY([-barShare, 0], { stroke: 'var(--line)' }),
      diagonalMark,
      Plot.ruleX(bins, { x: 'p_correct', y1: 'low', y2: 'high', stroke: 'var(--a)', strokeWidth: 2 }),
      Plot.dot(bins, {
        x: 'p_correct',
        y: 'accuracy',
        r: 5,
        fill: 'var(--a)',
        stroke: 'var(--panel)',
        title: note,
      }),
    ],
  };
}

const field = createColumnBuilder<Bin>();
const columns: Column<Bin>[] = [
  field('From', 'from', { format: formatPercent }),
  field('To', 'to', { format: formatPercent }),
  field('Answers', 'answers', { format: formatNumber }),
  field('Predicted', 'p_correct', { format: formatDecimal(3) }),
  field('Correct', 'accuracy', { format: formatDecimal(3) }),
  field('Low', 'low', { format: formatDecimal(3), about: '95 % interval' }),
  field('High', 'high', { format: formatDecimal(3), about: '95 % interval' }),
];
