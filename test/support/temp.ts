import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scoped } from './scope.js';

/** Creates a folder. Call `remove` after the processes that use it have ended. */
export async function dataFolder(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'skilltrace-test-')));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}

/** Creates a folder and removes it after the test. */
export async function tempDir(t: Scoped): Promise<string> {
  const { path, remove } = await dataFolder();
  t.after(remove);
  return path;
}
