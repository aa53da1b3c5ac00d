import * as Plot from '@observablehq/plot';
import { useCallback, useMemo } from 'preact/hooks';
import type { Prediction } from '../../../../client/types.js';
import { dayMs, formatDate } from '../../../../domain/base/common.js';
import { computeDomain } from '../../../../lab/report/marks.js';
import { formatDay, formatPercent, pluralize } from '../../base/format.js';
import { computeToday } from '../../base/school-days.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

export const measureTexts = { total: 'Total', math: 'Math', rw: 'Reading and writing' } as const;
export type Measure = keyof typeof measureTexts;

export interface FanPoint {
  readonly days: number;
  readonly score: number;
  readonly low: number | null;
  readonly high: number | null;
}

const computeDate = (days: number): Date => new Date((computeToday() + days) * dayMs);
const formatFutureDay = (days: number): string => formatDay(formatDate(computeDate(days).getTime()));

const field = createColumnBuilder<FanPoint>();
const columns: readonly Column<FanPoint>[] = [
  field('Days from now', 'days'),
  field('Day', ({ days }) => formatFutureDay(days)),
  field('Expected', 'score'),
  field('Low', 'low', { align: 'end' }),
  field('High', 'high', { align: 'end' }),
];

type Goal = Prediction['goal_tracking'];

interface ForecastFanProps {
  readonly points: readonly FanPoint[];
  readonly measure: Measure;
  readonly level: number;
  /** Null without an open goal, or for a section score. */
  readonly goal: Goal | null;
}

export function ForecastFan({ points, measure, level, goal }: ForecastFanProps) {
  const target = goal?.target_score ?? null;
  const date = goal?.target_date ?? null;
  const plot = useCallback(
    (dots: readonly FanPoint[]) => plotFan(dots, measure, target, date),
    [measure, target, date],
  );
  const series = useMemo(
    () => ({
      Expected: 'a',
      [`${formatPercent(level)} range`]: 'bar',
      ...(target !== null && { [`Goal ${target}`]: 'b' }),
    }),
    [level, target],
  );
  return (
    <Chart
      title={`${measureTexts[measure]}: now and in ${pluralize(points.at(-1)?.days ?? 0, 'day')}`}
      about="The band is the range for the score of a test on that day. A wider band means more uncertainty."
      series={series}
      plot={plot}
      rows={points}
      columns={columns}
    />
  );
}

const scoreBounds = { total: [400, 1600], math: [200, 800], rw: [200, 800] } as const;

function plotFan(
  points: readonly FanPoint[],
  measure: Measure,
  target: number | null,
  date: string | null,
): Plot.PlotOptions {
  const intervalPoints = points.filter(({ low }) => low !== null);
  const x = ({ days }: FanPoint): Date => computeDate(days);
  const ys = points.flatMap(({ score, low, high }) => [score, low ?? score, high ?? score]);
  const goalTime = date === null ? null : Date.parse(date);
  const isGoalVisible = goalTime !== null && goalTime <= computeDate(points.at(-1)?.days ?? 0).getTime();
  return {
    x: { type: 'utc', label: 'day' },
    y: {
      label: 'score',
      grid: true,
      tickFormat: 'd',
      domain: computeDomain(target === null ? ys : [...ys, target], scoreBounds[measure], 100),
    },
    marks: [
      Plot.areaY(intervalPoints, { x, y1: 'low', y2: 'high', fill: 'var(--a)', fillOpacity: 0.2 }),
      Plot.line(intervalPoints, { x, y: 'low', stroke: 'var(--a)', strokeOpacity: 0.5 }),
      Plot.line(intervalPoints, { x, y: 'high', stroke: 'var(--a)', strokeOpacity: 0.5 }),
      Plot.line(points, { x, y: 'score', stroke: 'var(--a)', strokeWidth: 2.5 }),
      Plot.dot(points, {
        ...{ x, y: 'score', fill: 'var(--a)', stroke: 'var(--panel)', r: 5 },
        title: (dot: FanPoint) =>
          `${formatFutureDay(dot.days)}: ${dot.score}${dot.low === null ? '' : `, ${dot.low} to ${dot.high}`}`,
      }),
      ...(target === null
        ? []
        : [Plot.ruleY([target], { stroke: 'var(--b)', strokeWidth: 2, strokeDasharray: '6 4' })]),
      ...(isGoalVisible
        ? [Plot.ruleX([new Date(goalTime)], { stroke: 'var(--b)', strokeDasharray: '2 4' })]
        : []),
    ],
  };
}
