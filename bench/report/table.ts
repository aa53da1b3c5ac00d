import { aligned } from '../../src/lab/report/numbers.js';
import type { BenchResults } from '../results.js';
import { factsOf, sectionsOf } from './sections.js';
import type { Section } from './view.js';

/** Goals come last. */
export function tableOf(results: BenchResults): string {
  const facts = factsOf(results).map(([name, text]) => `${name}: ${text}`);
  const [goals, ...others] = sectionsOf(results);
  const measured = [...others.filter(({ rows }) => rows.length > 0), goals];
  return `${[facts.join('\n'), ...measured.map(blockOf)].join('\n\n')}\n`;
}

function blockOf({ heading, head, rows, notes = [] }: Section): string {
  const lines = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? cell : cell.text)));
  return [heading, aligned([head, ...lines]), ...notes].join('\n');
}
