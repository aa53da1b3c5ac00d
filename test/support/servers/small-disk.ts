/** A disk of a few megabytes that a test can fill completely. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrorCode } from '../../../src/embedded/private-file.js';
import type { Scoped } from '../scope.js';

/** @returns why a tmpfs cannot be mounted here, or null. Mounting needs Linux and root. */
export function noSmallDisks(): string | null {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  const words = ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'];
  const { status, stderr } = spawnSync('unshare', words, { encoding: 'utf8' });
  return status === 0 ? null : `a tmpfs cannot be mounted here: ${stderr.trim()}`;
}

/** Mounts a tmpfs on the folder until the end of the test. */
export function mountSmallDisk(scope: Scoped, path: string, megabytes: number) {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', path]);
  scope.after(() => execFileSync('umount', ['-l', path]));
  const filler = join(path, 'filler');
  return {
    path,
    /** Uses every byte until `empty`. */
    fill: (): void => {
      const file = openSync(filler, 'a');
      for (const bytes of [1 << 20, 4096]) while (writes(file, bytes));
      closeSync(file);
    },
    empty: (): void => rmSync(filler),
  };
}

function writes(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch (error) {
    if (hasErrorCode(error, 'ENOSPC')) return false;
    throw error;
  }
}
