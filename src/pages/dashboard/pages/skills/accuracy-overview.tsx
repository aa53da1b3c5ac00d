import * as Plot from '@observablehq/plot';
import { computeDomain, shareAxis } from '../../../../lab/report/marks.js';
import { formatPercent, pluralize } from '../../base/format.js';
import { formatSection } from '../../base/skill-names.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

export interface SkillPoint {
  readonly name: string;
  readonly section: string;
  readonly answers: number;
  readonly right: number;
  readonly predicted: number;
}

const series = { [formatSection('math')]: 'a', [formatSection('rw')]: 'b', [formatSection(null)]: 'c' };

const field = createColumnBuilder<SkillPoint>();
const columns: readonly Column<SkillPoint>[] = [
  field('Skill', 'name'),
  field('Section', 'section'),
  field('Answers', 'answers'),
  field('Correct', 'right', { format: formatPercent }),
  field('Predicted', 'predicted', { format: formatPercent }),
];

export const AccuracyOverview = ({ rows }: { rows: readonly SkillPoint[] }) => (
  <Chart
    {...{ title: 'Predicted and correct answers', rows, columns, plot: plotAccuracy, height: 340 }}
    series={Object.fromEntries(
      Object.entries(series).filter(([name]) => rows.some(({ section }) => section === name)),
    )}
    about="Each dot is a skill. Larger dots have more answers. On the line, predictions match results. Below the line, learners do worse than predicted, above it better. Labels name the largest differences."
    empty="No stored answers."
  />
);

function plotAccuracy(rows: readonly SkillPoint[]): Plot.PlotOptions {
  const domain = computeDomain(
    rows.flatMap(({ right, predicted }) => [right, predicted]),
    [0, 1],
    0.2,
  );
  const named = selectOutliers(rows, domain[1] - domain[0]);
  // Labels point to the centre and so stay inside the chart.
  const middle = (domain[0] + domain[1]) / 2;
  return {
    x: shareAxis('Predicted', domain),
    y: shareAxis('Correct', domain),
    r: { range: [2, 11] },
    marks: [
      Plot.line(
        domain.map((share) => [share, share]),
        { stroke: 'var(--soft)', strokeDasharray: '3 4' },
      ),
      Plot.dot(rows, {
        ...{ x: 'predicted', y: 'right', r: 'answers', fill: 'section', fillOpacity: 0.75 },
        stroke: 'var(--panel)',
        title: ({ name, right, predicted, answers }: SkillPoint) =>
          `${name}: ${formatPercent(right)} correct, ${formatPercent(predicted)} predicted, ${pluralize(answers, 'answer')}`,
      }),
      ...(['start', 'end'] as const).map((textAnchor) =>
        Plot.text(
          named.filter(({ predicted }) => predicted > middle === (textAnchor === 'end')),
          {
            ...{ x: 'predicted', y: 'right', text: 'name', fill: 'var(--text)', textAnchor },
            ...{ dx: textAnchor === 'end' ? -12 : 12, dy: -10, stroke: 'var(--panel)', strokeWidth: 4 },
          },
        ),
      ),
    ],
  };
}

/** Largest errors, without overlapping labels. @param range length of the axes */
function selectOutliers(rows: readonly SkillPoint[], range: number): readonly SkillPoint[] {
  const computeError = ({ right, predicted }: SkillPoint): number => Math.abs(right - predicted);
  const outliers: SkillPoint[] = [];
  for (const row of rows.toSorted((a, b) => computeError(b) - computeError(a)))
    if (outliers.length < 5 && !outliers.some((other) => isNear(row, other, range))) outliers.push(row);
  return outliers;
}

const isNear = (a: SkillPoint, b: SkillPoint, range: number): boolean =>
  Math.abs(a.predicted - b.predicted) < 0.15 * range && Math.abs(a.right - b.right) < 0.07 * range;
