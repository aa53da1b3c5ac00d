export const benchStyle = `
:root { --front: #0072b2; --work: #56b4e9; --runtime: #a08bb8; --redis: #d55e00; --pipe: #00876a; --click: #d9a400;
  --other: #b5407c; --postgres: #7b4b2a; }
@media (prefers-color-scheme: dark) { :root { --front: #3f8fd2; --work: #9ad4f7; --runtime: #8f7ba8; --redis: #f0853a;
  --pipe: #35b894; --click: #ecc94b; --other: #f08fbb; --postgres: #c9976b; } }
.charts { align-items: start; grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); }
`;

const colors: Readonly<Record<string, string>> = {
  skilltrace: 'a',
  echo: 'soft',
  fastify: 'b',
  'fastify-outbox': 'e',
  'fastify-postgres': 'c',
  'fastify-postgres-sync': 'c',
  'fastify-postgres-function': 'd',
  'fastify-postgres-function-sync': 'd',
};

export const targetColor = (target: string): string => colors[target] ?? 'e';

/** In stacking order. */
const partColors: Readonly<Record<string, string>> = {
  'front end': 'front',
  server: 'soft',
  workers: 'work',
  forecast: 'other',
  runtime: 'runtime',
  libuv: 'b',
  rest: 'soft',
  redis: 'redis',
  postgres: 'postgres',
  pipeline: 'pipe',
  clickhouse: 'click',
};

export const partColor = (part: string): string => partColors[part] ?? 'other';

/** Unknown names come last. */
export function sortParts(names: readonly string[]): string[] {
  const known = Object.keys(partColors);
  const place = (name: string): number => (known.includes(name) ? known.indexOf(name) : known.length);
  return [...new Set(names)].sort((a, b) => place(a) - place(b));
}
