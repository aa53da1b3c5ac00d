import type { BenchResults } from '../results/results.js';
import { cpuSection } from './cpu.js';
import { createDataSections } from './data-sections.js';
import { goalSection } from './goals.js';
import { loadsSection, peersSection } from './loads.js';
import { formatFigure, formatNoise, formatRun, type Section } from './section.js';

/** Goals come first. */
export const buildSections = (results: BenchResults): [Section, ...Section[]] => [
  goalSection(results),
  peersSection(results),
  loadsSection(results),
  cpuSection(results),
  ...createDataSections(results),
];

export function listFacts(results: BenchResults): (readonly [name: string, text: string])[] {
  const { machine, versions, scenarios, seconds } = results;
  const tools = Object.entries(versions).map((entry) => entry.join(' '));
  const { processor, cores, memoryMb, system } = machine;
  return [
    ['Run', `${formatRun(results)}, ${Math.round(seconds)} s`],
    ['Machine', `${processor}, ${cores} cores, ${formatFigure(memoryMb)} MB, ${system}`],
    ['Versions', tools.join(', ')],
    ['Noise', formatNoise(results)],
    ...new Map(scenarios.map(({ name, about }) => [name, about])),
  ];
}
