import type { Row } from '../../src/lab/report/page.js';
import type { BenchResults, Measurement } from '../results/results.js';
import {
  buildMeasurementRows,
  findLedgerProblems,
  formatFigure,
  formatSpread,
  type Section,
} from './section.js';

export const createDataSections = ({ scenarios }: BenchResults): Section[] => [
  {
    heading: 'Pipeline',
    about:
      'From the outbox in Redis to rows and rollups in ClickHouse while answers come in. Lag: how long the oldest answer waited, at the worst moment of each round.',
    head: ['Scenario, target', 'Rows per second', 'Lag, s'],
    rows: buildMeasurementRows(scenarios, ({ pipeline }) =>
      pipeline === null ? [] : [[formatSpread(pipeline.rowsPerSecond), formatSpread(pipeline.lag)]],
    ),
  },
  {
    heading: 'Correctness',
    about:
      'After each scenario: every answer that was acknowledged with 200 is counted in Redis, and after the drain each is one row in ClickHouse. Answers that were rejected under overload may be counted or not.',
    head: [
      'Scenario, target',
      'Acknowledged',
      'Rejected',
      'In Redis',
      'In ClickHouse',
      'Different there',
      '',
    ],
    rows: buildMeasurementRows(scenarios, ledgerRows),
  },
  {
    heading: 'Memory',
    about: 'Largest resident memory of the processes, in MB.',
    head: ['Scenario, target', 'Processes'],
    rows: buildMeasurementRows(scenarios, ({ memory }) => {
      const parts = Object.entries(memory).map(([part, size]) => `${part} ${formatFigure(size)}`);
      return parts.length === 0 ? [] : [[parts.join(', ')]];
    }),
  },
];

function ledgerRows({ ledger }: Measurement): Row[] {
  if (ledger === null) return [];
  const { acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse } = ledger;
  const counts = [acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse].map(formatFigure);
  const problems = findLedgerProblems(ledger);
  if (problems.length === 0) return [[...counts, 'all there, once']];
  return [[...counts, { text: `WRONG: ${problems.join('; ')}`, look: 'off' }]];
}
