/** The packages of package-lock.json. The test full/registry checks them for known vulnerabilities. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockedPackages, withoutHash } from '../support/inspect/lock-file.js';
import { root } from '../support/runner/root.js';

const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));

const packages = lockedPackages();

test('Every package has one version and a hash, except known ones, and comes from the npm registry', () => {
  const { dependencies, devDependencies } = read('package.json');
  for (const [name, version] of Object.entries<string>({ ...dependencies, ...devDependencies }))
    assert.match(version, /^(npm:[\w.@/-]+@)?\d+\.\d+\.\d+$/, name);
  assert.ok(packages.length > 50);
  const unhashed: string[] = [];
  for (const [path, { resolved, integrity, optional }] of packages) {
    assert.match(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);
    if (integrity === undefined) {
      assert.ok(optional, path);
      unhashed.push(path.replace('node_modules/', ''));
    } else assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
  assert.deepEqual(unhashed.sort(), [...withoutHash].sort());
});

test('Only chdb, esbuild and msgpackr-extract run scripts when they are installed', () => {
  const names = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  assert.deepEqual(names.sort(), [
    'node_modules/chdb',
    'node_modules/esbuild',
    'node_modules/msgpackr-extract',
  ]);
});

test('The packages of the service have permissive licences', () => {
  const allowed = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Unlicense'];
  for (const [path, { integrity, license = '', dev }] of packages) {
    if (dev || integrity === undefined) continue;
    const choices = license.replaceAll(/[()]/g, '').split(' OR ');
    assert.ok(
      choices.some((one) => allowed.includes(one)),
      `${path}: ${license}`,
    );
  }
});
