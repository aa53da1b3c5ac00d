import * as Plot from '@observablehq/plot';
import { computeDomain, shareAxis } from '../../../../lab/report/marks.js';
import { percent, plural } from '../../base/format.js';
import { sectionName } from '../../base/skill-names.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';

export interface Point {
  readonly name: string;
  readonly section: string;
  readonly answers: number;
  readonly right: number;
  readonly predicted: number;
}

const series = { [sectionName('math')]: 'a', [sectionName('rw')]: 'b', [sectionName(null)]: 'c' };

const field = fieldsOf<Point>();
const columns: readonly Column<Point>[] = [
  field('Skill', 'name'),
  field('Section', 'section'),
  field('Answers', 'answers'),
  field('Right', 'right', { format: percent }),
  field('Predicted', 'predicted', { format: percent }),
];

export const Overview = ({ rows }: { rows: readonly Point[] }) => (
  <Chart
    {...{ title: 'Right against predicted', rows, columns, plot, height: 340 }}
    series={Object.fromEntries(
      Object.entries(series).filter(([name]) => rows.some(({ section }) => section === name)),
    )}
    about="A dot for each skill, larger with more answers. On the line predictions were right on average; below it learners do worse than expected, above it better. The furthest from it are named."
    empty="No answers are stored."
  />
);

function plot(rows: readonly Point[]): Plot.PlotOptions {
  const domain = computeDomain(
    rows.flatMap(({ right, predicted }) => [right, predicted]),
    [0, 1],
    0.2,
  );
  const named = furthest(rows, domain[1] - domain[0]);
  // Labels point to the centre and so stay inside the chart.
  const middle = (domain[0] + domain[1]) / 2;
  return {
    x: shareAxis('Predicted', domain),
    y: shareAxis('Right', domain),
    r: { range: [2, 11] },
    marks: [
      Plot.line(
        domain.map((share) => [share, share]),
        { stroke: 'var(--soft)', strokeDasharray: '3 4' },
      ),
      Plot.dot(rows, {
        ...{ x: 'predicted', y: 'right', r: 'answers', fill: 'section', fillOpacity: 0.75 },
        stroke: 'var(--panel)',
        title: ({ name, right, predicted, answers }: Point) =>
          `${name}: ${percent(right)} right, ${percent(predicted)} predicted, ${plural(answers, 'answer')}`,
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
function furthest(rows: readonly Point[], range: number): readonly Point[] {
  const off = ({ right, predicted }: Point): number => Math.abs(right - predicted);
  const named: Point[] = [];
  for (const row of rows.toSorted((a, b) => off(b) - off(a)))
    if (named.length < 5 && !named.some((other) => isNear(row, other, range))) named.push(row);
  return named;
}

const isNear = (a: Point, b: Point, range: number): boolean =>
  Math.abs(a.predicted - b.predicted) < 0.15 * range && Math.abs(a.right - b.right) < 0.07 * range;
