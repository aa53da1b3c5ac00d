/** The benchmark as a page for people, which opens without a network. */
import { writeFileSync } from 'node:fs';
import { htmlPage, section, tag, textTag } from '../../src/lab/report/page.js';
import type { BenchResults } from '../results.js';
import { bookSections } from './books.js';
import { cpuSection } from './cpu.js';
import { goalSection } from './goals.js';
import { growthSection } from './growth.js';
import { latencySection } from './load.js';
import { ownStyle } from './style.js';
import { throughputSection } from './throughput.js';
import { machineText, noiseText, runText, versionsText } from './view.js';

/** @throws where the file cannot be written */
export const writeReport = (results: BenchResults, file: string): void =>
  writeFileSync(file, benchPage(results));

const benchPage = (results: BenchResults): string =>
  htmlPage(
    'Benchmark of Skilltrace',
    [
      factsOf(results),
      readingSection,
      goalSection(results),
      latencySection(results),
      throughputSection(results),
      cpuSection(results),
      growthSection(results),
      ...bookSections(results),
    ],
    ownStyle,
  );

function factsOf(results: BenchResults): string {
  const facts: readonly (readonly [string, string])[] = [
    ['Run', `${runText(results)}, ${Math.round(results.seconds)} s`],
    ['Machine', machineText(results)],
    ['Versions', versionsText(results)],
    ['Noise', noiseText(results) || 'not looked at'],
  ];
  return tag(
    'dl',
    { class: 'facts' },
    ...facts.flatMap(([name, text]) => [textTag('dt', {}, name), textTag('dd', {}, text)]),
  );
}

const readingSection = section(
  'How to read it',
  'Ratios first: absolute times are the machine’s, ratios between targets of the same run are not. The echo is a bare server on the same HTTP library that only parses: the ceiling. Fastify reads and writes one hash for an answer, without event ids and outbox; fastify-outbox keeps the promises of the service. The other peers are further ways to write it. Targets take turns, so that a slower minute of the machine hits them all; figures are medians over rounds, with the smallest and the largest in brackets. Load generator and servers share the machine. Rest the pointer on a dot or a bar for its numbers.',
);
