import * as Plot from '@observablehq/plot';
import type { SkillStatistics } from '../../../../client/types.js';
import {
  type ChartPoint,
  computeDomain,
  createSeriesMarks,
  shareAxis,
} from '../../../../lab/report/marks.js';
import { percent, plural } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';

type Step = SkillStatistics['learning_curve'][number];

const series = { Right: 'a', Predicted: 'b', 'Mastery before': 'c' };

const field = fieldsOf<Step>();
const columns: readonly Column<Step>[] = [
  field('Answer', 'attempt'),
  field('Learners', 'learners'),
  field('Right', 'accuracy', { format: percent }),
  field('Low', 'low', { format: percent }),
  field('High', 'high', { format: percent }),
  field('Predicted', 'p_correct', { format: percent }),
  field('Mastery before', 'mastery', { format: percent }),
];

export const LearningCurve = ({ rows }: { rows: readonly Step[] }) => (
  <section class="panel" aria-label="Learning curve">
    <Chart
      {...{ title: 'Learning curve', series, rows, columns, plot: curve, height: 320 }}
      about="Learners' first to 30th answer on the skill: how many were right, with the 95 % interval, and what was predicted before. Later answers are of those who went on, so compare the lines with each other rather than with their beginning."
      empty="It takes five learners with answers."
    />
    <Chart
      {...{ title: 'Learners left', rows, columns, plot: left, height: 150 }}
      about="How many came as far as each answer."
      empty="It takes five learners with answers."
    />
  </section>
);

function curve(rows: readonly Step[]): Plot.PlotOptions {
  const shown = rows.flatMap((row): ChartPoint[] => {
    const x = row.attempt;
    const of = `answer ${x} of ${plural(row.learners, 'learner')}`;
    const point = (name: string, y: number): ChartPoint => ({
      ...{ series: name, x, y, note: `${percent(y)}, ${of}` },
    });
    return [
      { ...point('Right', row.accuracy), low: row.low, high: row.high },
      point('Predicted', row.p_correct),
      point('Mastery before', row.mastery),
    ];
  });
  const domain = computeDomain(
    rows.flatMap((row) => [row.low, row.high, row.p_correct, row.mastery]),
    [0, 1],
    0.4,
  );
  return { x: answerAxis(rows), y: shareAxis('', domain), marks: createSeriesMarks(shown) };
}

/** Aligns the columns of both charts. */
const answerAxis = (rows: readonly Step[]): Plot.ScaleOptions => ({
  ...{ label: 'Answer', domain: [0.5, Math.max(10, rows.length) + 0.5], tickFormat: 'd' },
});

const left = (rows: readonly Step[]): Plot.PlotOptions => ({
  x: answerAxis(rows),
  y: { label: '', grid: true, ticks: 3, tickFormat: 'd' },
  marks: [
    Plot.rect(rows, {
      ...{ x1: ({ attempt }: Step) => attempt - 0.5, x2: ({ attempt }: Step) => attempt + 0.5, inset: 1 },
      ...{ y1: 0, y2: 'learners', fill: 'var(--bar)' },
      title: ({ attempt, learners }: Step) => `answer ${attempt}: ${plural(learners, 'learner')}`,
    }),
  ],
});
