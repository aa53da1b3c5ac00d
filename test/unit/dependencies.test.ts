/**
 * The packages that the service is made of: pinned, checked by hash, under licences that allow it, and without known
 * serious weaknesses. The last one asks the registry, so the same commit may fail one day: that is wanted, for what is
 * served then has a weakness that is public. It fails for serious ones of packages that are served, and for nothing
 * that the network does.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
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
  /-(android|darwin|freebsd|linux|openharmony|win32)-(arm|arm64|x64|ia32|ppc64|riscv64|s390x)(-\w+)?$/.test(
    path,
  );

test('few packages run a script when they are installed', () => {
  const names = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  assert.deepEqual(names.sort(), ['node_modules/chdb', 'node_modules/msgpackr-extract']);
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

interface Weakness {
  readonly name: string;
  readonly severity: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

interface Report {
  readonly auditReportVersion: number;
  readonly vulnerabilities: Readonly<Record<string, Weakness>>;
}

/** Advisories that do not concern us, by the end of their URL, each with the reason. */
const accepted: Readonly<Record<string, string>> = {};

/** The serious ones, in words. */
const seriousIn = ({ vulnerabilities }: Report): string[] =>
  Object.values(vulnerabilities)
    .filter(({ severity }) => severity === 'high' || severity === 'critical')
    .flatMap(({ name, severity, via }) =>
      via.flatMap((cause) =>
        typeof cause === 'string' ? [] : [`${name}, ${severity}: ${cause.title}, ${cause.url}`],
      ),
    )
    .filter((line) => !Object.keys(accepted).some((id) => line.endsWith(`/${id}`)));

test('serious weaknesses are found in a report', () => {
  const cause = { title: 'Reads what it should not', url: 'https://github.com/advisories/GHSA-1' };
  const entry = (name: string, severity: string): Weakness => ({ name, severity, via: [cause, 'other'] });
  const vulnerabilities = { a: entry('a', 'critical'), b: entry('b', 'moderate'), c: entry('c', 'high') };
  assert.deepEqual(
    seriousIn({ auditReportVersion: 2, vulnerabilities }).map((line) => line.split(':')[0]),
    ['a, critical', 'c, high'],
  );
});

/** npm's report; or why there is none: its exit code tells the two apart no better than its output does. */
function audit(): Promise<Report | { readonly message: string }> {
  const words = [
    'audit',
    '--omit=dev',
    '--package-lock-only',
    '--json',
    '--loglevel=error',
    '--fetch-retries=0',
  ];
  return new Promise((resolve) => {
    execFile('npm', words, { cwd: root, timeout: 60_000, maxBuffer: 2 ** 26 }, (error, stdout) => {
      try {
        resolve(JSON.parse(stdout));
      } catch {
        resolve({ message: error?.message ?? 'npm wrote no JSON' });
      }
    });
  });
}

test('no package that is served has a known serious weakness', async (t) => {
  const report = await audit();
  if (!('auditReportVersion' in report)) {
    t.skip(`not checked, the registry has no audit here: ${report.message}`);
    return;
  }
  assert.deepEqual(seriousIn(report), [], 'update the package, or accept the advisory with a reason');
});
