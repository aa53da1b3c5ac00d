import * as Plot from '@observablehq/plot';
import { useCallback, useMemo } from 'preact/hooks';
import type { Prediction } from '../../../../client/types.js';
import { computeDomain } from '../../../../lab/report/marks.js';
import { day, percent, plural } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';

export const measures = { total: 'Total', math: 'Math', rw: 'Reading and writing' } as const;
export type Measure = keyof typeof measures;

export interface Dot {
  readonly days: number;
  readonly score: number;
  readonly low: number | null;
  readonly high: number | null;
}

const dayMs = 86_400_000;
const timeIn = (days: number): Date => new Date(Date.now() + days * dayMs);
const dayIn = (days: number): string => day(timeIn(days).toISOString());

const field = fieldsOf<Dot>();
const columns: readonly Column<Dot>[] = [
  field('Days from now', 'days'),
  field('Day', ({ days }) => dayIn(days)),
  field('Expected', 'score'),
  field('Low', 'low', { align: 'end' }),
  field('High', 'high', { align: 'end' }),
];

type Goal = Prediction['goal_tracking'];

interface FanProps {
  readonly dots: readonly Dot[];
  readonly measure: Measure;
  readonly level: number;
  /** Null for a section score, because goals are total scores. */
  readonly goal: Goal | null;
}

export function Fan({ dots, measure, level, goal }: FanProps) {
  const target = goal?.target_score ?? null;
  const date = goal?.target_date ?? null;
  const plot = useCallback(
    (dots: readonly Dot[]) => fanOf(dots, measure, target, date),
    [measure, target, date],
  );
  const series = useMemo(
    () => ({
      Expected: 'a',
      [`${percent(level)} interval`]: 'bar',
      ...(target !== null && { [`Goal ${target}`]: 'b' }),
    }),
    [level, target],
  );
  return (
    <Chart
      title={`${measures[measure]}: now and in ${plural(dots.at(-1)?.days ?? 0, 'day')}`}
      about="The band is where a test on that day would be expected. The wider it is, the less is known."
      series={series}
      plot={plot}
      rows={dots}
      columns={columns}
    />
  );
}

const bounds = { total: [400, 1600], math: [200, 800], rw: [200, 800] } as const;

function fanOf(
  dots: readonly Dot[],
  measure: Measure,
  target: number | null,
  date: string | null,
): Plot.PlotOptions {
  const sure = dots.filter(({ low }) => low !== null);
  const x = ({ days }: Dot): Date => timeIn(days);
  const ys = dots.flatMap(({ score, low, high }) => [score, low ?? score, high ?? score]);
  const goalTime = date === null ? null : Date.parse(date);
  const isSeen = goalTime !== null && goalTime <= timeIn(dots.at(-1)?.days ?? 0).getTime();
  return {
    x: { type: 'utc', label: 'UTC day' },
    y: {
      label: 'score',
      grid: true,
      tickFormat: 'd',
      domain: computeDomain(target === null ? ys : [...ys, target], bounds[measure], 100),
    },
    marks: [
      Plot.areaY(sure, { x, y1: 'low', y2: 'high', fill: 'var(--a)', fillOpacity: 0.2 }),
      Plot.line(sure, { x, y: 'low', stroke: 'var(--a)', strokeOpacity: 0.5 }),
      Plot.line(sure, { x, y: 'high', stroke: 'var(--a)', strokeOpacity: 0.5 }),
      Plot.line(dots, { x, y: 'score', stroke: 'var(--a)', strokeWidth: 2.5 }),
      Plot.dot(dots, {
        ...{ x, y: 'score', fill: 'var(--a)', stroke: 'var(--panel)', r: 5 },
        title: (dot: Dot) =>
          `${dayIn(dot.days)}: ${dot.score}${dot.low === null ? '' : `, ${dot.low} to ${dot.high}`}`,
      }),
      ...(target === null
        ? []
        : [Plot.ruleY([target], { stroke: 'var(--b)', strokeWidth: 2, strokeDasharray: '6 4' })]),
      ...(isSeen ? [Plot.ruleX([new Date(goalTime)], { stroke: 'var(--b)', strokeDasharray: '2 4' })] : []),
    ],
  };
}
