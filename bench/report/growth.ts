/** What an answer costs, and how many a second there are, while something grows: learners, API processes. */
import { chartFigure } from '../../src/lab/report/chart.js';
import { compact } from '../../src/lab/report/numbers.js';
import { chartGrid, section } from '../../src/lab/report/page.js';
import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results.js';
import { barFigure, fromZero } from './bars.js';
import { targetColor } from './style.js';
import { acceptingCpu, shown, spreadText } from './view.js';

/** A scenario at one place of its axis. */
interface Place {
  readonly label: string;
  readonly value: number;
  readonly scenario: ScenarioResult;
}

interface Quantity {
  readonly title: string;
  readonly unit: string;
  readonly of: (measurement: Measurement) => Spread | null;
}

/** @returns empty where nothing grew */
export function growthSection({ scenarios }: BenchResults): string {
  const places = scenarios.flatMap((scenario): Place[] =>
    scenario.axis ? [{ ...scenario.axis, scenario }] : [],
  );
  const labels = [...new Set(places.map(({ label }) => label))];
  const charts = labels.flatMap((label) => chartsOf(places.filter((place) => place.label === label)));
  if (charts.length === 0) return '';
  const text =
    'The same kind of load while something else grows: CPU until the answer, without the pipeline. Thin lines span all rounds; the tables above have all values.';
  return section('Growth', text, chartGrid(charts));
}

function chartsOf(places: readonly Place[]): string[] {
  const [first] = places;
  if (first === undefined || places.length < 2) return [];
  const { unit } = first.scenario;
  const quantities: Quantity[] = [
    { title: `CPU per ${unit} by ${first.label}`, unit: `µs of CPU per ${unit}`, of: acceptingCpu },
    {
      title: `${unit}s a second by ${first.label}`,
      unit: `${unit}s a second`,
      of: ({ throughput }) => throughput,
    },
  ];
  return quantities.map((quantity) => growthChart(quantity, places)).filter((chart) => chart !== '');
}

interface Point {
  readonly target: string;
  readonly place: Place;
  readonly value: Spread;
}

/** Over many magnitudes a line; otherwise a bar for each value. */
function growthChart(quantity: Quantity, places: readonly Place[]): string {
  const points = places.flatMap((place) =>
    place.scenario.measurements.flatMap((measurement): Point[] => {
      const value = quantity.of(measurement);
      return value === null ? [] : [{ target: measurement.target, place, value }];
    }),
  );
  if (points.length === 0) return '';
  const values = places.map(({ value }) => value);
  const wide = Math.max(...values) >= 10 * Math.min(...values);
  return wide ? lineChart(quantity, points) : barChart(quantity, points);
}

const noteOf = ({ target, place, value }: Point): string =>
  `${target}, ${place.label}: ${shown(place.value)}: ${spreadText(value)}`;

const colorsFor = (points: readonly Point[]) =>
  Object.fromEntries(points.map(({ target }) => [target, targetColor(target)]));

const axisOf = ({ unit }: Quantity, points: readonly Point[]) =>
  fromZero(
    points.map(({ value }) => value.high),
    unit,
  );

const lineChart = (quantity: Quantity, points: readonly Point[]): string =>
  chartFigure({
    title: quantity.title,
    about: points.map(noteOf).join('; '),
    x: { type: 'log', label: points[0]?.place.label ?? '', tickFormat: powerText },
    y: { grid: true, ...axisOf(quantity, points) },
    series: colorsFor(points),
    points: points.map((point) => ({
      series: point.target,
      x: point.place.value,
      y: point.value.median,
      low: point.value.low,
      high: point.value.high,
      note: noteOf(point),
    })),
  });

/** Labels of other values would overlap. */
const powerText = (value: number): string => (Number.isInteger(Math.log10(value)) ? compact(value) : '');

const barChart = (quantity: Quantity, points: readonly Point[]): string =>
  barFigure({
    title: quantity.title,
    x: axisOf(quantity, points),
    colors: colorsFor(points),
    rows: points.map((point) => ({
      name: `${point.place.label}: ${shown(point.place.value)}, ${point.target}`,
      value: shown(point.value.median),
      parts: [{ from: 0, to: point.value.median, series: point.target, note: noteOf(point) }],
      range: point.value,
    })),
  });
