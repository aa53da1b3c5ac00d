import type { BenchResults } from '../results.js';
import { bookSections } from './books.js';
import { cpuSection } from './cpu.js';
import { goalSection } from './goals.js';
import { growthSection } from './growth.js';
import { latencySection } from './latency.js';
import { throughputSection } from './throughput.js';
import { noiseText, runText, type Section, shown } from './view.js';

/** Goals come first. */
export const sectionsOf = (results: BenchResults): [Section, ...Section[]] => [
  goalSection(results),
  latencySection(results),
  throughputSection(results),
  cpuSection(results),
  growthSection(results),
  ...bookSections(results),
];

export function factsOf(results: BenchResults): (readonly [name: string, text: string])[] {
  const { machine, versions, scenarios, seconds } = results;
  const tools = Object.entries(versions).map((entry) => entry.join(' '));
  const { processor, cores, memoryMb, system } = machine;
  return [
    ['Run', `${runText(results)}, ${Math.round(seconds)} s`],
    ['Machine', `${processor}, ${cores} cores, ${shown(memoryMb)} MB, ${system}`],
    ['Versions', tools.join(', ')],
    ['Noise', noiseText(results)],
    ...new Map(scenarios.map(({ name, about }) => [name, about])),
  ];
}
