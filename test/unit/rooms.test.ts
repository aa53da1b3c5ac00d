/** The directions of imports: between floors, and between the rooms of a floor (docs/architecture.md, ADR 35). */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative, sep } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/root.js';

/** Floors and what each may import beside itself. Modules of `src/` itself are leaves for all but the domain. */
const floors: Readonly<Record<string, readonly string[]>> = {
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
};

/** The rooms of each floor that has several: one imports those before it. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [
    ...['base', 'tracing', 'prediction', 'catalogue', 'answer', 'learner', 'score', 'advice', 'history'],
    ...['fit/bkt', 'fit/prediction', 'fit/accuracy', 'fit'],
  ],
  'src/contracts': ['.', 'xapi', 'responses'],
  'src/store': [
    ...['redis', 'models', 'catalogue', 'outbox', 'learners', 'corrections', 'audit', 'access', 'webhooks'],
    'rebuild',
  ],
  'src/warehouse': ['clickhouse', 'schema', 'ingest', 'reads', 'maintenance'],
  'src/embedded': ['.', 'clickhouse'],
  'src/services': [
    ...[
      'read',
      'record',
      'pipeline',
      'corrections',
      'models',
      'import',
      'catalogue',
      'xapi',
      'audit',
      'retention',
      'rebuild',
      'webhooks',
      'access',
    ],
  ],
  'src/pages': [
    ...['docs', 'dashboard/base', 'dashboard/parts'],
    ...['skills', 'class', 'learner', 'live', 'model', 'operations'].map((page) => `dashboard/pages/${page}`),
    ...['dashboard/pages', 'dashboard'],
  ],
  'src/lab': ['report', 'evaluate', 'backtest', 'demo'],
  workers: ['track', 'forecast', 'fit', 'rebuild', '.'],
};

/** What starts a program imports the application; everything else below `src/` itself is a leaf. */
const programs = ['src/main.ts'];

const filesOf = (folders: readonly string[], suffix: RegExp): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => suffix.test(name))
      .map((name) => join(folder, name)),
  );

const sources = filesOf(['src', 'workers'], /\.(c?ts|tsx)$/);

const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    ([, path]) => normalize(join(dirname(file), path as string)),
  );

const floorOf = (file: string): string =>
  Object.keys(floors).find((floor) => file.startsWith(floor + sep)) ?? dirname(file);

const roomOf = (file: string): string => relative(floorOf(file), dirname(file)) || '.';

/** Why `file` may not import `other`; undefined where it may. */
function objection(file: string, other: string): string | undefined {
  const [from, to] = [floorOf(file), floorOf(other)];
  if (from !== to) return floors[from]?.includes(to) === false ? `${from} does not import ${to}` : undefined;
  const order = rooms[from];
  if (order === undefined || order.indexOf(roomOf(other)) <= order.indexOf(roomOf(file))) return undefined;
  return `${roomOf(file)} stands before ${roomOf(other)}`;
}

/** The source file behind an import: `./x.js` is x.ts if there is no x.js, `./x.jsx` is x.tsx. */
const sourceOf = (path: string): string =>
  existsSync(join(root, path)) ? path : path.replace(/\.(c?)js(x?)$/, '.$1ts$2');

type Imports = ReadonlyMap<string, readonly string[]>;

/** Circles of imports, as `a -> b -> a`. A circle is listed once, from the file where the search meets it. */
function importCircles(imports: Imports): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const follow = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file].join(' -> '));
    else if (!done.has(file)) {
      for (const other of imports.get(file) ?? []) follow(other, [...path, file]);
      done.add(file);
    }
  };
  for (const file of imports.keys()) follow(file, []);
  return circles;
}

test('every folder is a room that the tables name', () => {
  for (const file of sources) {
    const floor = floorOf(file);
    assert.ok(floor in floors || floor === 'src', `${file}: no such floor`);
    assert.ok((rooms[floor] ?? ['.']).includes(roomOf(file)), `${file}: no such room`);
  }
});

test('imports point one way, between floors and between rooms', () => {
  const against = sources
    .filter((file) => !programs.includes(file))
    .flatMap((file) =>
      importsOf(file).flatMap((other) => {
        const why = objection(file, other);
        return why === undefined ? [] : [`${file} -> ${other}: ${why}`];
      }),
    );
  assert.deepEqual(against, []);
});

test('the domain is pure', () => {
  const impure = sources
    .filter((file) => floorOf(file) === 'src/domain')
    .filter((file) => /(?:from|import)\s*\(?\s*'[^.]/.test(readFileSync(join(root, file), 'utf8')));
  assert.deepEqual(impure, []);
});

test('an import against the direction is found', () => {
  const found = (file: string, other: string) => objection(file, other) !== undefined;
  assert.ok(found('src/domain/score/x.ts', 'src/store/redis/client.js'));
  assert.ok(found('src/domain/base/x.ts', 'src/errors.js'));
  assert.ok(found('src/store/outbox/x.ts', 'src/warehouse/ingest/x.js'));
  assert.ok(found('src/store/redis/x.ts', 'src/store/learners/x.js'));
  assert.ok(found('src/http/x.ts', 'src/store/redis/client.js'));
  assert.ok(found('workers/track/x.ts', 'src/services/read/x.js'));
  assert.ok(!found('src/services/read/x.ts', 'src/store/learners/x.js'));
});

test('no import circles between files, type imports included', () => {
  const files = filesOf(['src', 'workers', 'bench'], /\.([cm]?[jt]s|tsx)$/);
  const imports = new Map(files.map((file) => [file, importsOf(file).map(sourceOf)]));
  const lost = [...imports.values()].flat().filter((file) => !existsSync(join(root, file)));
  assert.deepEqual(lost, [], 'every import leads to a file');
  assert.deepEqual(importCircles(imports), []);
});

test('an import circle is found', () => {
  const circle: Imports = new Map([
    ['a.ts', ['b.ts']],
    ['b.ts', ['c.ts', 'd.ts']],
    ['c.ts', []],
    ['d.ts', ['c.ts', 'b.ts']],
  ]);
  assert.deepEqual(importCircles(circle), ['b.ts -> d.ts -> b.ts']);
  assert.deepEqual(importCircles(new Map([['a.ts', ['a.ts']]])), ['a.ts -> a.ts']);
  assert.deepEqual(importCircles(new Map([['a.ts', ['b.ts']]])), []);
});
