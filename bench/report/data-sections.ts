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
      'Rows that move from the outbox in Redis to ClickHouse during the load. Lag is the maximum age of the oldest waiting answer in each round.',
    head: ['Scenario, target', 'Rows per second', 'Lag, s'],
    rows: buildMeasurementRows(scenarios, ({ pipeline }) =>
      pipeline === null ? [] : [[formatSpread(pipeline.rowsPerSecond), formatSpread(pipeline.lag)]],
    ),
  },
  {
    heading: 'Correctness',
    about:
      'Check after each scenario: Redis counts every answer that was acknowledged with 200, and after the drain ClickHouse has exactly one row for each.',
    head: ['Scenario, target', 'Acknowledged', 'In Redis', 'In ClickHouse', 'Distinct rows', 'Result'],
    rows: buildMeasurementRows(scenarios, ledgerRows),
  },
  {
    heading: 'Memory',
    about: 'Maximum resident memory of the processes, in MB.',
    head: ['Scenario, target', 'Processes'],
    rows: buildMeasurementRows(scenarios, ({ memory }) => {
      const parts = Object.entries(memory).map(([part, size]) => `${part} ${formatFigure(size)}`);
      return parts.length === 0 ? [] : [[parts.join(', ')]];
    }),
  },
];

function ledgerRows({ ledger }: Measurement): Row[] {
  if (ledger === null) return [];
  const { acknowledged, inRedis, inClickHouse, distinctInClickHouse } = ledger;
  const counts = [acknowledged, inRedis, inClickHouse, distinctInClickHouse].map(formatFigure);
  const problems = findLedgerProblems(ledger);
  if (problems.length === 0) return [[...counts, 'complete, no duplicates']];
  return [[...counts, { text: `FAILED: ${problems.join('; ')}`, look: 'off' }]];
}
