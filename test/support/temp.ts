import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Creates a folder and removes it after the test. */
export async function tempDir(t: TestContext): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'skilltrace-test-')));
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}
