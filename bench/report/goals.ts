import { goalNames } from '../results/goals.js';
import type { BenchResults, Figure } from '../results/results.js';
import { type BarRow, barFigure } from './bars.js';
import { formatFigure, formatRatio, formatSpread, type Section } from './section.js';

export function goalSection({ figures }: BenchResults): Section {
  const judged = figures.filter(({ goal }) => goal !== null);
  const missing = goalNames.filter((name) => !figures.some((figure) => figure.name === name));
  return {
    heading: 'Goals',
    about:
      'Bars to the right of the line reach the goal, bars to the left miss it; the length shows the factor. Thin lines show the interval of the median. Figures without a goal are only reported.',
    notes: [
      `${judged.filter(isReached).length} of ${judged.length} goals reached`,
      ...(missing.length === 0 ? [] : [`Not measured in this run: ${missing.join('; ')}`]),
    ],
    head: ['Figure', 'Value', 'Goal', 'Result'],
    rows: figures.map((figure) => [
      figure.name,
      formatInterval(figure),
      formatGoal(figure),
      { text: formatVerdict(isReached(figure)), look: isReached(figure) === false ? 'off' : undefined },
    ]),
    charts: () => goalCharts(judged),
  };
}

/** Null without a goal. */
function isReached({ goal, value }: Pick<Figure, 'goal' | 'value'>): boolean | null {
  if (goal === null) return null;
  return 'atMost' in goal ? value.median <= goal.atMost : value.median >= goal.atLeast;
}

const formatVerdict = (reached: boolean | null): string =>
  reached === null ? '' : reached ? 'reached' : 'MISSED';

const formatInterval = (figure: Figure): string =>
  figure.unit === 'times' ? formatRatio(figure.value) : formatValue(figure, formatSpread(figure.value));

const formatValue = ({ unit }: Figure, text: string): string => `${text} ${unit}`.trimEnd();

function formatGoal({ goal }: Figure): string {
  if (goal === null) return '';
  return 'atMost' in goal ? `≤ ${formatFigure(goal.atMost)}` : `≥ ${formatFigure(goal.atLeast)}`;
}

/** Bars end here, so that one extreme figure does not flatten the others. */
const maxShownFactor = 16;

function goalCharts(figures: readonly Figure[]): string[] {
  if (figures.length === 0) return [];
  const factors = figures.map((figure) => computeFactor(figure, figure.value.median));
  const far = Math.min(maxShownFactor, Math.max(2, ...factors.map((factor) => Math.max(factor, 1 / factor))));
  const chart = barFigure({
    title: 'Figures relative to their goals',
    x: {
      type: 'log',
      domain: [1 / far, far],
      label: 'times better than the goal',
      tickFormat: formatFigure,
    },
    level: 1,
    colors: { reached: 'c', missed: 'b' },
    rows: figures.map(goalRow),
  });
  return [chart];
}

function goalRow(figure: Figure): BarRow {
  const { name, about, value } = figure;
  const reached = isReached(figure);
  const text = `${formatValue(figure, formatFigure(value.median))}, ${formatGoal(figure)} ${reached ? '✓' : '✗'}`;
  const ends = [value.low, value.high].map((end) => computeFactor(figure, end));
  const series = reached ? 'reached' : 'missed';
  return {
    name,
    value: text,
    parts: [{ from: 1, to: computeFactor(figure, value.median), series, note: `${about}: ${text}` }],
    range: { low: Math.min(...ends), high: Math.max(...ends) },
  };
}

/** How many times better than the goal; below 1 if missed. */
function computeFactor({ goal }: Figure, value: number): number {
  if (goal === null) return 1;
  return 'atMost' in goal ? goal.atMost / value : value / goal.atLeast;
}
