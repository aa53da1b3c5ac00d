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
  'How to read it',
  'Ratios first: absolute times are the machine’s, ratios between targets of the same run are not. The echo is a bare server on the same HTTP library that only parses: the ceiling. Fastify reads and writes one hash for an answer, without event ids and outbox; fastify-outbox keeps the promises of the service. The other peers are further ways to write it. Targets take turns, so that a slower minute of the machine hits them all; figures are medians over rounds, with the smallest and the largest in brackets. Load generator and servers share the machine. Rest the pointer on a dot or a bar for its numbers.',
);
