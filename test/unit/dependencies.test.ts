/**
 * The packages that the service is made of: pinned, checked by hash, under licences that allow it. Whether they have known
 * weaknesses is asked of the registry, by full/advisories.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/root.js';

const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));

interface Locked {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly optional?: true;
  readonly dev?: true;
  readonly hasInstallScript?: true;
}

const packages = Object.entries<Locked>(read('package-lock.json').packages).filter(([path]) => path !== '');

test('every package is pinned to one version and its hash, and comes from a registry', () => {
  const { dependencies, devDependencies } = read('package.json');
  for (const [name, version] of Object.entries<string>({ ...dependencies, ...devDependencies }))
    assert.match(version, /^(npm:[\w.@/-]+@)?\d+\.\d+\.\d+$/, name);
  assert.ok(packages.length > 50);
  for (const [path, { resolved, integrity, optional }] of packages) {
    assert.match(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);
    // The lock file was written with a registry that has only some platforms: of the others it knows no hash.
    if (integrity === undefined) assert.ok(optional && isOfPlatform(path), path);
    else assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
});

/** Binaries of one system and processor, of which at most one is installed. */
const isOfPlatform = (path: string): boolean =>
  /[-/](aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)-(arm|arm64|x64|ia32|loong64|mips64el|ppc64|riscv64|s390x)(-\w+)?$/.test(
    path,
  );

test('few packages run a script when they are installed', () => {
  const names = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  assert.deepEqual(names.sort(), [
    'node_modules/chdb',
    'node_modules/esbuild',
    'node_modules/msgpackr-extract',
  ]);
});

test('packages that are served have licences that ask for no more than to be named', () => {
  const allowed = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'];
  for (const [path, { integrity, license = '', dev }] of packages) {
    if (dev || integrity === undefined) continue;
    assert.ok(
      license.split(' OR ').some((one) => allowed.includes(one.replace(/[()]/g, ''))),
      `${path}: ${license}`,
    );
  }
});
