import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { StartError } from '../lifecycle.js';

/**
 * Writes a file of mode 600 so that readers see the old text or the whole new one.
 * @throws StartError where there is no room, or no right to
 */
export function writePrivate(file: string, content: unknown): void {
  const fresh = `${file}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`;
  try {
    writeFileSync(fresh, `${JSON.stringify(content)}\n`, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(fresh, file);
  } catch (error) {
    rmSync(fresh, { force: true });
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`DATA_DIR: ${file} cannot be written: ${reason}`, { cause: error });
  }
}

/** The parsed JSON of a file, or null when there is no such file. @throws when it is unreadable */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new Error(`cannot read ${file}`, { cause: error });
  }
}
