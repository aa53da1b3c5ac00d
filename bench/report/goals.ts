/** The figures with goals: by how much each is surpassed or missed. */
import { chartGrid, htmlTable, section } from '../../src/lab/report/page.js';
import type { BenchResults, Figure, Spread } from '../results.js';
import { type BarRow, barFigure } from './bars.js';
import { figureCells, goalText, isReached, reachedText, shown, unmeasured, valueText } from './view.js';

/** @returns empty where the run had no figures */
export function goalSection(results: BenchResults): string {
  const { figures } = results;
  if (figures.length === 0) return '';
  const judged = figures.filter(({ goal }) => goal !== null);
  const reached = judged.filter(isReached).length;
  const missing = unmeasured(results);
  const text = `${reached} of ${judged.length} goals are reached. Bars to the right of the line are better than the goal by so much, bars to the left miss it; the thin lines span the smallest and the largest value of all rounds. A figure without a goal is only shown.${missing.length === 0 ? '' : ` Not measured in this run: ${missing.join('; ')}.`}`;
  const table = htmlTable(
    ['Figure', 'Value', 'Must reach', 'Aim', ''],
    figures.map((figure) => [
      ...figureCells(figure),
      { text: reachedText(figure), look: isReached(figure) === false ? 'off' : undefined },
    ]),
  );
  return section('Goals', text, chartGrid([...goalCharts(judged), table]));
}

/** Bars end here at the latest, so that one figure far from its goal does not press all others flat. */
const widest = 16;

function goalCharts(figures: readonly Figure[]): string[] {
  if (figures.length === 0) return [];
  const factors = figures.map((figure) => factorOf(figure, figure.value.median));
  const far = Math.min(widest, Math.max(2, ...factors.map((factor) => Math.max(factor, 1 / factor))));
  const chart = barFigure({
    title: 'Figures against their goals',
    x: { type: 'log', domain: [1 / far, far], label: 'times better than the goal', tickFormat: shown },
    level: 1,
    colors: { reached: 'c', missed: 'b' },
    rows: figures.map(goalRow),
  });
  return [chart];
}

function goalRow(figure: Figure): BarRow {
  const factor = factorOf(figure, figure.value.median);
  return {
    name: figure.name,
    value: againstGoal(figure),
    parts: [
      {
        from: 1,
        to: factor,
        series: isReached(figure) ? 'reached' : 'missed',
        note: `${figure.about}: ${againstGoal(figure)}`,
      },
    ],
    range: rangeOf(figure, figure.value),
  };
}

/** How many times better than its goal a value is; below 1 where it misses it. */
function factorOf({ goal }: Figure, value: number): number {
  if (goal === null) return 1;
  return 'atMost' in goal ? goal.atMost / value : value / goal.atLeast;
}

function rangeOf(figure: Figure, { low, high }: Spread): { low: number; high: number } {
  const ends = [factorOf(figure, low), factorOf(figure, high)];
  return { low: Math.min(...ends), high: Math.max(...ends) };
}

const againstGoal = (figure: Figure): string =>
  `${valueText(figure, shown(figure.value.median))}, ${goalText(figure)} ${isReached(figure) ? '✓' : '✗'}`;
