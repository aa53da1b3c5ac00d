/**
 * Known weaknesses of the packages that are served. It asks the registry, so the same commit may fail one day: that is
 * wanted, for what is served then has a weakness that is public. It fails for serious ones of packages that are served,
 * and for nothing that the network does.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { root } from '../support/runner/root.js';

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
