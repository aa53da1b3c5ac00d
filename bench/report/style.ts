/** Looks of the benchmark's page beside those that all reports share: who has which colour. */
import type { SeriesStyle } from '../../src/lab/report/chart.js';

export const ownStyle = `
:root { --front: #0072b2; --work: #56b4e9; --runtime: #a08bb8; --redis: #d55e00; --pipe: #00876a; --click: #d9a400;
  --other: #b5407c; }
@media (prefers-color-scheme: dark) { :root { --front: #3f8fd2; --work: #9ad4f7; --runtime: #8f7ba8; --redis: #f0853a;
  --pipe: #35b894; --click: #ecc94b; --other: #f08fbb; } }
.start { text-anchor: start; }
svg text.told { fill: var(--text); font-variant-numeric: tabular-nums; }
.part { fill: var(--of); }
.part.a { --of: var(--a); } .part.b { --of: var(--b); } .part.c { --of: var(--c); } .part.d { --of: var(--d); }
.part.e { --of: var(--e); } .part.observed { --of: var(--soft); }
.part.front { --of: var(--front); } .part.work { --of: var(--work); } .part.runtime { --of: var(--runtime); }
.part.redis { --of: var(--redis); } .part.pipe { --of: var(--pipe); } .part.click { --of: var(--click); }
.part.other { --of: var(--other); } .part.reached { --of: var(--c); } .part.missed { --of: var(--b); }
.whisker { fill: none; stroke: var(--text); stroke-width: 1.25; }
.level { stroke: var(--text); stroke-width: 1.5; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 1rem 0; font-size: .95rem; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
svg text.name, svg text.told { paint-order: stroke; stroke: var(--panel); stroke-width: 4px; }
h3 { font-size: 1rem; margin: 1.6rem 0 .6rem; }
.charts { align-items: start; grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); }
.charts + .scroll, .scroll + .charts { margin-top: 1.25rem; }
.charts > .scroll table { font-size: .87rem; width: 100%; }
.charts > .scroll td:first-child { min-width: 7rem; }
.charts > .scroll th, .charts > .scroll td { padding-right: .6rem; }
`;

const targetStyles: Readonly<Record<string, SeriesStyle>> = {
  skilltrace: 'a',
  echo: 'observed',
  fastify: 'b',
  'fastify-outbox': 'e',
  'fastify-bullmq': 'c',
  'task-per-request': 'd',
};

/** Of a target's lines and bars, the same in all charts. */
export const targetStyle = (target: string): SeriesStyle => targetStyles[target] ?? 'e';

/** In the order in which they are stacked. */
const partFills: Readonly<Record<string, string>> = {
  'front end': 'front',
  server: 'observed',
  workers: 'work',
  forecast: 'other',
  runtime: 'runtime',
  libuv: 'b',
  rest: 'observed',
  redis: 'redis',
  pipeline: 'pipe',
  clickhouse: 'click',
};

/** Class of a CPU part's colour. */
export const partFill = (part: string): string => partFills[part] ?? 'other';

/** Each of the names once, those without a colour of their own last. */
export function partsInOrder(names: readonly string[]): string[] {
  const known = Object.keys(partFills);
  const place = (name: string): number => (known.includes(name) ? known.indexOf(name) : known.length);
  return [...new Set(names)].sort((a, b) => place(a) - place(b));
}
