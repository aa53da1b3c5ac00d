/** How many answers a second there are, and what each costs, by target. */
import { chartGrid, htmlTable, section } from '../../src/lab/report/page.js';
import type { BenchResults, ScenarioResult, Spread } from '../results.js';
import { type BarRow, barFigure, fromZero } from './bars.js';
import { targetColor } from './style.js';
import { contests, costCells, hasCost, measurementRows, only, shown, spreadText } from './view.js';

export function throughputSection({ scenarios }: BenchResults): string {
  const measured = only(scenarios, ({ throughput }) => throughput !== null);
  if (measured.length === 0) return '';
  const text =
    'All connections busy (closed loop): how much a target does in a second when it never waits. Longer bars are better. The thin lines span all rounds.';
  const head = ['Scenario, target', 'Per second', '× echo', 'CPU µs each', '× echo', 'CPU µs later'];
  const rows = measurementRows(scenarios, (one, scenario) =>
    hasCost(one) ? costCells(scenario, one) : null,
  );
  const table = htmlTable(head, rows);
  return section('Throughput', text, chartGrid(contests(measured).map(throughputChart)), table);
}

function throughputChart({ name, unit, measurements }: ScenarioResult): string {
  const rows = measurements.map(({ target, throughput }): BarRow => {
    const { median, low, high } = throughput as Spread;
    const note = `${target}: ${spreadText(throughput as Spread)} ${unit}s a second`;
    const part = { from: 0, to: median, series: target, note };
    return { name: target, value: shown(median), parts: [part], range: { low, high } };
  });
  const highest = measurements.map(({ throughput }) => throughput?.high ?? 0);
  return barFigure({
    title: `${name}: ${unit}s a second`,
    x: fromZero(highest, `${unit}s a second`),
    colors: Object.fromEntries(measurements.map(({ target }) => [target, targetColor(target)])),
    rows,
  });
}
