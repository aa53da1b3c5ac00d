/** Whether every answer arrived, how fast the pipeline moved them on, and what memory all of it took. */
import { type Cell, htmlTable, section } from '../../src/lab/report/page.js';
import type { BenchResults, Measurement } from '../results.js';
import { ledgerProblems, memoryText, scenarioTitle, shown, spreadText } from './view.js';

/** One row for each target of each scenario that has what a table is about. */
function rowsOf(
  { scenarios }: BenchResults,
  cells: (measurement: Measurement) => readonly Cell[] | null,
): Cell[][] {
  return scenarios.flatMap((scenario) =>
    scenario.measurements.flatMap((measurement) => {
      const found = cells(measurement);
      return found === null
        ? []
        : [[{ text: `${scenarioTitle(scenario)}, ${measurement.target}` }, ...found]];
    }),
  );
}

const tableSection = (
  heading: string,
  text: string,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
): string =>
  rows.length === 0 ? '' : section(heading, text, htmlTable(['Scenario, target', ...head], rows));

export const ledgerSection = (results: BenchResults): string =>
  tableSection(
    'Correctness',
    'After each scenario: every answer that was acknowledged with 200 is counted in Redis, and after the drain each is one row in ClickHouse. Answers cut off by the end of a load may be counted or not.',
    ['Acknowledged', 'Cut off', 'In Redis', 'In ClickHouse', 'Different there', ''],
    rowsOf(results, ({ ledger }) => {
      if (ledger === null) return null;
      const { acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse } = ledger;
      const counts = [acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse];
      const problems = ledgerProblems(ledger);
      const verdict = { text: problems.length === 0 ? 'all there, once' : problems.join('; ') };
      return [
        ...counts.map((count) => ({ text: shown(count) })),
        { ...verdict, look: problems.length > 0 ? 'off' : undefined },
      ];
    }),
  );

export const pipelineSection = (results: BenchResults): string =>
  tableSection(
    'Pipeline',
    'From the outbox in Redis to rows and rollups in ClickHouse while answers come in. Lag: how long the oldest answer waited, at the worst moment of each round.',
    ['Rows per second', 'Lag, s'],
    rowsOf(
      results,
      ({ pipeline }) =>
        pipeline && [{ text: spreadText(pipeline.rowsPerSecond) }, { text: spreadText(pipeline.lag) }],
    ),
  );

export const memorySection = (results: BenchResults): string =>
  tableSection(
    'Memory',
    'Largest resident memory of the processes, in MB.',
    ['Processes'],
    rowsOf(results, (measurement) => {
      const text = memoryText(measurement);
      return text === null ? null : [{ text }];
    }),
  );
