/**
 * The packages that the service is made of: pinned, checked by hash, under licences that allow it. Whether they have known
 * weaknesses is asked of the registry, by full/advisories.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockedPackages, withoutHash } from '../support/inspect/lock-file.js';
import { root } from '../support/runner/root.js';

const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));

const packages = lockedPackages();

test('every package is pinned to one version and its hash, and comes from a registry', () => {
  const { dependencies, devDependencies } = read('package.json');
  for (const [name, version] of Object.entries<string>({ ...dependencies, ...devDependencies }))
    assert.match(version, /^(npm:[\w.@/-]+@)?\d+\.\d+\.\d+$/, name);
  assert.ok(packages.length > 50);
  for (const [path, { resolved, integrity, optional }] of packages) {
    assert.match(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);
    if (integrity === undefined) assert.ok(optional, path);
    else assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
});

test('the packages without a hash are the known ones', () => {
  const names = packages.flatMap(([path, { integrity }]) =>
    integrity === undefined ? [path.replace('node_modules/', '')] : [],
  );
  assert.deepEqual(names.sort(), [...withoutHash].sort());
});

test('few packages run a script when they are installed', () => {
  const names = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  assert.deepEqual(names.sort(), [
    'node_modules/chdb',
    'node_modules/esbuild',
    'node_modules/msgpackr-extract',
  ]);
});

test('packages that are served have licences that ask for no more than to be named', () => {
  const allowed = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Unlicense'];
  for (const [path, { integrity, license = '', dev }] of packages) {
    if (dev || integrity === undefined) continue;
    assert.ok(
      license.split(' OR ').some((one) => allowed.includes(one.replace(/[()]/g, ''))),
      `${path}: ${license}`,
    );
  }
});
