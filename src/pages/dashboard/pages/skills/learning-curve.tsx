import * as Plot from '@observablehq/plot';
import type { SkillStatistics } from '../../../../client/types.js';
import {
  type ChartPoint,
  computeDomain,
  createSeriesMarks,
  formatCountTick,
  shareAxis,
} from '../../../../lab/report/marks.js';
import { formatMastery, formatPercent, pluralize } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type CurveStep = SkillStatistics['learning_curve'][number];

const series = { Correct: 'a', Predicted: 'b', 'Mastery before': 'c' };

const field = createColumnBuilder<CurveStep>();
const columns: readonly Column<CurveStep>[] = [
  field('Answer', 'attempt'),
  field('Learners', 'learners'),
  field('Correct', 'accuracy', { format: formatPercent }),
  field('Low', 'low', { format: formatPercent }),
  field('High', 'high', { format: formatPercent }),
  field('Predicted', 'p_correct', { format: formatPercent }),
  field('Mastery before', 'mastery', { format: formatMastery }),
];

export const LearningCurve = ({ rows }: { rows: readonly CurveStep[] }) => (
  <section class="panel" aria-label="Learning curve">
    <Chart
      {...{ title: 'Learning curve', series, rows, columns, plot: plotCurve, height: 320 }}
      about="Share of correct answers in each learner's first to 30th answer on the skill, with its 95 % interval, and the predictions. Fewer learners reach later answers, so compare the lines with each other, not with their start."
      empty="Needs answers of at least 5 learners."
    />
    <Chart
      {...{ title: 'Learners per answer', rows, columns, plot: plotLearners, height: 150 }}
      about="Number of learners who reached each answer."
      empty="Needs answers of at least 5 learners."
    />
  </section>
);

function plotCurve(rows: readonly CurveStep[]): Plot.PlotOptions {
  const shown = rows.flatMap((row): ChartPoint[] => {
    const x = row.attempt;
    const origin = `answer ${x} of ${pluralize(row.learners, 'learner')}`;
    const point = (name: string, y: number): ChartPoint => ({
      ...{ series: name, x, y, note: `${formatPercent(y)}, ${origin}` },
    });
    return [
      { ...point('Correct', row.accuracy), low: row.low, high: row.high },
      point('Predicted', row.p_correct),
      point('Mastery before', row.mastery),
    ];
  });
  const domain = computeDomain(
    rows.flatMap((row) => [row.low, row.high, row.p_correct, row.mastery]),
    [0, 1],
    0.4,
  );
  return { x: buildAnswerAxis(rows), y: shareAxis('', domain), marks: createSeriesMarks(shown) };
}

/** Aligns the columns of both charts. */
const buildAnswerAxis = (rows: readonly CurveStep[]): Plot.ScaleOptions => ({
  ...{ label: 'Answer', domain: [0.5, Math.max(10, rows.length) + 0.5], tickFormat: formatCountTick },
});

const plotLearners = (rows: readonly CurveStep[]): Plot.PlotOptions => ({
  x: buildAnswerAxis(rows),
  y: { label: '', grid: true, ticks: 3, tickFormat: formatCountTick },
  marks: [
    Plot.rect(rows, {
      ...{
        x1: ({ attempt }: CurveStep) => attempt - 0.5,
        x2: ({ attempt }: CurveStep) => attempt + 0.5,
        inset: 1,
      },
      ...{ y1: 0, y2: 'learners', fill: 'var(--bar)' },
      title: ({ attempt, learners }: CurveStep) => `answer ${attempt}: ${pluralize(learners, 'learner')}`,
    }),
  ],
});
