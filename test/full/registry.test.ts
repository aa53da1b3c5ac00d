/** Checks against the package registry. An unchanged commit can fail when the registry changes. Without a registry, nothing is checked. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { lockedPackages } from '../support/inspect/lock-file.js';
import { root } from '../support/runner/root.js';

interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

/** Ids of advisories that do not affect the service, with the reason. */
const accepted: Readonly<Record<string, string>> = {};

/** npm's exit code does not distinguish findings from failures. @returns null without JSON */
function runNpm(...args: string[]): Promise<unknown> {
  const options = { cwd: root, timeout: 60_000, maxBuffer: 2 ** 26 };
  return new Promise((resolve) => {
    execFile('npm', [...args, '--json', '--loglevel=error', '--fetch-retries=0'], options, (_, stdout) => {
      try {
        resolve(JSON.parse(stdout));
      } catch {
        resolve(null);
      }
    });
  });
}

test('The runtime dependencies have no high or critical advisory', async (t) => {
  const report = (await runNpm('audit', '--omit=dev', '--package-lock-only')) as {
    readonly vulnerabilities?: Readonly<Record<string, Vulnerability>>;
  } | null;
  if (report?.vulnerabilities === undefined) {
    t.skip('npm audit returned no report');
    return;
  }
  const serious = Object.values(report.vulnerabilities)
    .filter(({ severity }) => severity === 'high' || severity === 'critical')
    .flatMap(({ name, via }) =>
      via.flatMap((cause) => (typeof cause === 'string' ? [] : [{ name, ...cause }])),
    )
    .filter(({ url }) => !Object.keys(accepted).some((id) => url.endsWith(`/${id}`)));
  assert.deepEqual(serious, [], 'update the package, or accept the advisory with a reason');
});

test('package-lock.json has every hash that the registry has', { timeout: 300_000 }, async () => {
  const missing: string[] = [];
  for (const [path, { version, integrity }] of lockedPackages()) {
    if (integrity !== undefined) continue;
    const name = path.replace('node_modules/', '');
    const hash = await runNpm('view', `${name}@${version}`, 'dist.integrity');
    if (typeof hash === 'string' && hash.startsWith('sha512-')) missing.push(`${path}: ${hash}`);
  }
  assert.deepEqual(missing, [], 'add them, and remove the exception in test/support/inspect/lock-file.ts');
});
