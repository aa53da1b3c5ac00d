/** The directions of imports: between floors, and between the rooms of a floor (docs/architecture.md, ADR 35). */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
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

const sources = ['src', 'workers'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(c?ts|tsx)$/.test(name))
    .map((name) => join(folder, name)),
);

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
