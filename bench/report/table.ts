import { formatTable } from '../../src/lab/report/format.js';
import type { BenchResults } from '../results/results.js';
import type { Section } from './section.js';
import { buildSections, listFacts } from './sections.js';

/** Goals come last. */
export function formatTables(results: BenchResults): string {
  const facts = listFacts(results).map(([name, text]) => `${name}: ${text}`);
  const [goals, ...others] = buildSections(results);
  const measured = [...others.filter(({ rows }) => rows.length > 0), goals];
  return `${[facts.join('\n'), ...measured.map(formatBlock)].join('\n\n')}\n`;
}

function formatBlock({ heading, head, rows, notes = [] }: Section): string {
  const lines = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? cell : cell.text)));
  return [heading, formatTable([head, ...lines]), ...notes].join('\n');
}
