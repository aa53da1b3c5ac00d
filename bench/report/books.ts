/** Tables: how fast the pipeline moved the answers on, whether every one arrived, and what memory all of it took. */
import { htmlTable, type Row, section } from '../../src/lab/report/page.js';
import type { BenchResults, Measurement } from '../results.js';
import { ledgerProblems, measurementRows, memoryText, shown, spreadText } from './view.js';

interface Topic {
  readonly heading: string;
  readonly about: string;
  readonly head: readonly string[];
  readonly cells: (measurement: Measurement) => Row | null;
}

const topics: readonly Topic[] = [
  {
    heading: 'Pipeline',
    about:
      'From the outbox in Redis to rows and rollups in ClickHouse while answers come in. Lag: how long the oldest answer waited, at the worst moment of each round.',
    head: ['Rows per second', 'Lag, s'],
    cells: ({ pipeline }) => pipeline && [spreadText(pipeline.rowsPerSecond), spreadText(pipeline.lag)],
  },
  {
    heading: 'Correctness',
    about:
      'After each scenario: every answer that was acknowledged with 200 is counted in Redis, and after the drain each is one row in ClickHouse. Answers that were rejected under overload may be counted or not.',
    head: ['Acknowledged', 'Rejected', 'In Redis', 'In ClickHouse', 'Different there', ''],
    cells: ({ ledger }) => {
      if (ledger === null) return null;
      const { acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse } = ledger;
      const counts = [acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse];
      const problems = ledgerProblems(ledger);
      const isRight = problems.length === 0;
      return [...counts.map(shown), isRight ? 'all there, once' : { text: problems.join('; '), look: 'off' }];
    },
  },
  {
    heading: 'Memory',
    about: 'Largest resident memory of the processes, in MB.',
    head: ['Processes'],
    cells: (measurement) => {
      const text = memoryText(measurement);
      return text === null ? null : [text];
    },
  },
];

/** Leaves out what was not measured. */
export const bookSections = ({ scenarios }: BenchResults): string[] =>
  topics.flatMap(({ heading, about, head, cells }) => {
    const rows = measurementRows(scenarios, cells);
    const table = htmlTable(['Scenario, target', ...head], rows);
    return rows.length === 0 ? [] : [section(heading, about, table)];
  });
