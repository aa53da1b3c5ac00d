/** Imports between layers and between the rooms of a layer (docs/understand/architecture.md), and large folders. Biome finds import cycles. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative, sep } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/runner/root.js';

/** Layers and the layers that each may import. Every layer except the domain may import the modules directly in `src/`. */
const layers: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [],
  'src/contracts': ['src/domain', 'src'],
  'src/store': ['src/domain', 'src/contracts', 'src'],
  'src/warehouse': ['src/domain', 'src/contracts', 'src'],
  'src/compute': ['src/domain', 'src/contracts', 'src'],
  'src/embedded': ['src/contracts', 'src'],
  'src/services': ['src/domain', 'src/contracts', 'src/store', 'src/warehouse', 'src/compute', 'src'],
  'src/http': ['src/contracts', 'src/services', 'src'],
  'src/jobs': ['src/contracts', 'src/store', 'src/services', 'src'],
  'src/app': [
    ...['src/domain', 'src/contracts', 'src/store', 'src/warehouse', 'src/compute', 'src/embedded'],
    ...['src/services', 'src/http', 'src/jobs', 'src'],
  ],
  'src/lab': ['src/domain', 'src/contracts', 'src/services', 'src'],
  'src/cli': [
    ...['src/domain', 'src/contracts', 'src/store', 'src/warehouse', 'src/compute', 'src/embedded'],
    ...['src/services', 'src/http', 'src/jobs', 'src/app', 'src/lab', 'src'],
  ],
  'src/client': ['src'],
  'src/pages': ['src/domain', 'src/lab', 'src/client', 'src'],
  workers: ['src/domain', 'src/contracts', 'src/store', 'src/warehouse', 'src'],
  // The last, because its path is the start of the others.
  src: ['src/contracts'],
};

/** The rooms of each layer that has several. A room may import the rooms before it. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [
    ...['base', 'tracing', 'prediction', 'catalogue', 'answer', 'learner', 'score', 'advice', 'classes'],
    'history',
    ...['fit/bkt', 'fit/prediction', 'fit/accuracy', 'fit'],
  ],
  'src/contracts': [
    ...['schema', 'settings', 'access', 'learners', 'outbox', 'answers', 'forecasts', 'catalogue', 'models'],
    ...['corrections', 'webhooks', 'journal', 'rebuild', 'xapi', 'responses'],
  ],
  'src/store': [
    ...['redis', 'redis/wire', 'redis/connection', 'redis/commands', 'redis/server'],
    ...[
      'models',
      'catalogue',
      'groups',
      'outbox',
      'learners',
      'corrections',
      'audit',
      'access',
      'operations',
    ],
    ...['webhooks', 'rebuild'],
  ],
  'src/warehouse': ['clickhouse', 'schema', 'ingest', 'reads', 'maintenance'],
  'src/embedded': ['.', 'clickhouse'],
  'src/services': [
    ...['paging', 'outbox', 'answers', 'answer-log', 'catalogue', 'learners', 'groups', 'import'],
    ...['forecasts', 'classes', 'goals'],
    ...['models', 'corrections', 'xapi', 'audit', 'retention', 'rebuild', 'webhooks', 'access', 'operations'],
  ],
  'src/app': ['startup', 'operations', 'processes', '.'],
  'src/cli': ['support', 'answer-log', 'import', 'export', 'models', 'demo', 'operations'],
  'src/pages': [
    ...['docs', 'dashboard/base', 'dashboard/parts'],
    ...['skills', 'class', 'learner', 'live', 'model', 'operations'].map((page) => `dashboard/pages/${page}`),
    ...['dashboard/pages', 'dashboard'],
  ],
  'src/lab': ['report', 'evaluate', 'backtest', 'demo'],
  workers: ['track', 'forecast', 'fit', '.'],
};

/** Imports the application, unlike the other modules directly in `src/`. */
const programs = ['src/main.ts'];

const listFiles = (folders: readonly string[], suffix: RegExp): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => suffix.test(name))
      .map((name) => join(folder, name)),
  );

const sources = listFiles(['src', 'workers'], /\.(c?ts|tsx)$/);
const readSource = (file: string): string => readFileSync(join(root, file), 'utf8');

const findImports = (file: string): string[] =>
  [...readSource(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    normalize(join(dirname(file), path as string)),
  );

const layerOf = (file: string): string =>
  Object.keys(layers).find((layer) => file.startsWith(layer + sep)) ?? dirname(file);

const roomOf = (file: string): string => relative(layerOf(file), dirname(file)) || '.';

/** @returns why `file` may not import `other`, or null */
function findViolation(file: string, other: string): string | null {
  const [from, to] = [layerOf(file), layerOf(other)];
  if (from !== to) return layers[from]?.includes(to) === false ? `${from} does not import ${to}` : null;
  const order = rooms[from];
  if (order === undefined || order.indexOf(roomOf(other)) <= order.indexOf(roomOf(file))) return null;
  return `${roomOf(file)} does not import ${roomOf(other)}`;
}

test('Every source file is in a listed layer and room', () => {
  const isListed = (file: string) =>
    layerOf(file) in layers && (rooms[layerOf(file)] ?? ['.']).includes(roomOf(file));
  const unlisted = sources.filter((file) => !isListed(file));
  assert.deepEqual(unlisted, []);
});

test('A source file imports only the layers and rooms that it may import', () => {
  const violations = sources
    .filter((file) => !programs.includes(file))
    .flatMap((file) => findImports(file).map((other) => [file, other, findViolation(file, other)] as const))
    .filter(([, , violation]) => violation !== null);
  assert.deepEqual(violations, []);
});

test('The domain imports no package', () => {
  const importsPackage = (file: string) => /(?:from|import)\s*\(?\s*'[^.]/.test(readSource(file));
  assert.deepEqual(sources.filter((file) => layerOf(file) === 'src/domain').filter(importsPackage), []);
});

test('No folder of src, workers and bench has more than 20 files', () => {
  const counts = new Map<string, number>();
  for (const file of listFiles(['src', 'workers', 'bench'], /\.\w+$/))
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  const large = [...counts].filter(([, count]) => count > 20);
  assert.deepEqual(large, []);
});

test('findViolation finds a forbidden import', () => {
  for (const [file, other, isAllowed] of [
    ['src/domain/score/x.ts', 'src/store/redis/connection/client.js', false],
    ['src/domain/base/x.ts', 'src/errors.js', false],
    ['src/store/redis/commands/x.ts', 'src/store/learners/x.js', false],
    ['src/services/learners/x.ts', 'src/store/learners/x.js', true],
  ] as const)
    assert.equal(findViolation(file, other) === null, isAllowed, `${file} -> ${other}`);
});
