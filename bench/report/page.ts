import { writeFileSync } from 'node:fs';
import { chartGrid, htmlPage, htmlTable, section, tag, textTag } from '../../src/lab/report/page.js';
import type { BenchResults } from '../results/results.js';
import type { Section } from './section.js';
import { buildSections, listFacts } from './sections.js';
import { benchStyle } from './style.js';

export const writeReport = (results: BenchResults, file: string): void =>
  writeFileSync(file, renderPage(results));

function renderPage(results: BenchResults): string {
  const facts = listFacts(results).flatMap(([name, text]) => [
    textTag('dt', {}, name),
    textTag('dd', {}, text),
  ]);
  const parts = [
    tag('dl', { class: 'run' }, ...facts),
    readingGuide,
    ...buildSections(results).map(renderSection),
  ];
  return htmlPage('Benchmark of Skilltrace', parts, benchStyle);
}

function renderSection({ heading, about, notes = [], head, rows, charts = () => [] }: Section): string {
  const drawn = charts();
  const table = rows.length === 0 ? [] : [htmlTable(head, rows)];
  const content = drawn.length === 0 ? table : [chartGrid(drawn), ...table];
  return content.length === 0 ? '' : section(heading, [...notes, about].join('. '), ...content);
}

const readingGuide = section(
  'How to read this report',
  'Compare ratios between targets of this run; absolute times depend on the machine. Targets: “echo” only parses the request, on the same HTTP library as the service, and shows the upper limit. “fastify” reads and writes one Redis hash per answer, without event ids and outbox. “fastify-outbox” gives the same guarantees as the service. “fastify-postgres” and “fastify-postgres-function” give them with PostgreSQL. The targets take turns, so that a slow phase of the machine affects all of them. Values are medians over the rounds. Brackets contain an interval that covers the median with a probability of at least 90 %, or the range of fewer than five rounds. Ratios are computed round by round; “no difference” means that their interval contains 1. Load generator and servers share the machine. Point at a dot or bar to see its values.',
);
