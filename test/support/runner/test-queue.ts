/** The test files of a run that no process has taken yet: a folder with one empty file for each. */
import { readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrorCode } from '../../../src/embedded/private-file.js';

/** @param names of test files, in the order in which processes take them */
export function fillQueue(folder: string, names: readonly string[]): void {
  for (const [i, name] of names.entries())
    writeFileSync(join(folder, `${i}`.padStart(4, '0') + encodeURIComponent(name)), '');
}

/**
 * Takes a test file. The process that removes a file of the folder has taken it.
 * @param fromEnd takes the last file instead of the first
 * @returns its name; null if the queue is empty
 */
export function takeNext(folder: string, fromEnd: boolean): string | null {
  const waiting = readdirSync(folder).sort();
  for (const entry of fromEnd ? waiting.reverse() : waiting)
    if (remove(join(folder, entry))) return decodeURIComponent(entry.slice(4));
  return null;
}

/** @returns whether the file existed */
function remove(file: string): boolean {
  try {
    unlinkSync(file);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return false;
    throw error;
  }
}
