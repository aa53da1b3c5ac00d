/**
 * Hashes that the lock file lacks and the registry names by now. Where the registry has none of these packages, as a mirror
 * of some platforms has not, there is nothing to tell.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { lockedPackages } from '../support/inspect/lock-file.js';
import { root } from '../support/runner/root.js';

/** Undefined where the registry does not have it, or is not there. */
async function hashOf(name: string, version: string): Promise<string | undefined> {
  const words = ['view', `${name}@${version}`, 'dist.integrity', '--json'];
  const run = promisify(execFile)('npm', words, { cwd: root });
  const { stdout } = await run.catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }));
  return /^"(sha512-[A-Za-z0-9+/]{86}==)"\s*$/.exec(stdout)?.[1];
}

test('the registry names no hash that the lock file lacks', { timeout: 300_000 }, async () => {
  const found: string[] = [];
  for (const [path, { version, integrity }] of lockedPackages()) {
    if (integrity !== undefined) continue;
    const hash = await hashOf(path.replace('node_modules/', ''), version);
    if (hash !== undefined) found.push(`${path}: "integrity": "${hash}"`);
  }
  assert.deepEqual(
    found,
    [],
    'to be added to package-lock.json, and taken off test/support/inspect/lock-file.ts',
  );
});
