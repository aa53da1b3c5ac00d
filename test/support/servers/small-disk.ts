/** A disk of a few megabytes that a test can fill completely. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Scoped } from './service.js';

export interface SmallDisk {
  readonly path: string;
  /** Uses every byte until `empty`. */
  fill(): void;
  empty(): void;
}

/** @returns why a tmpfs cannot be mounted here, or null. Mounting needs Linux and root. */
export function noSmallDisks(): string | null {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  const { status, stderr } = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], {
    encoding: 'utf8',
  });
  return status === 0 ? null : `a tmpfs cannot be mounted here: ${stderr.trim()}`;
}

/** Mounts a tmpfs on the folder until the end of the test. */
export function mountSmallDisk(scope: Scoped, path: string, megabytes: number): SmallDisk {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', path]);
  scope.after(() => execFileSync('umount', ['-l', path]));
  const filler = join(path, 'filler');
  return {
    path,
    fill: () => {
      const file = openSync(filler, 'a');
      for (const bytes of [1 << 20, 4096]) while (writes(file, bytes));
      closeSync(file);
    },
    empty: () => rmSync(filler),
  };
}

function writes(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false;
    throw error;
  }
}
