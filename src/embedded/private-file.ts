import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartError } from '../lifecycle.js';

export const hasErrorCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code));

/**
 * Creates missing folders with mode 700. Node's recursive mkdir retries ENOENT below /proc without end.
 * @throws StartError
 */
export function ensureFolder(path: string): void {
  const missing: string[] = [];
  try {
    for (let at = resolve(path); !isFolder(at); at = dirname(at)) missing.unshift(at);
    for (const folder of missing) createFolder(folder);
  } catch (error) {
    throw createStartError(`${JSON.stringify(path)} cannot be created`, error);
  }
}

function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found && !found.isDirectory()) throw new Error(`${path} is not a folder`);
  return found !== undefined;
}

function createFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!isFolder(folder)) throw error;
  }
}

function createStartError(what: string, cause: unknown): StartError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const advice = 'Check the path, its owner and the free disk space, or choose another folder';
  return new StartError(`DATA_DIR: ${what}: ${reason}. ${advice}`, { cause });
}

/** Replaces the file atomically, with mode 600. @throws StartError */
export function writePrivateJson(file: string, content: unknown): void {
  const temporary = `${file}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`;
  try {
    writeFileSync(temporary, `${JSON.stringify(content)}\n`, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw createStartError(`${file} cannot be written`, error);
  }
}

/** Null: no file. @throws StartError if unreadable */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return null;
    throw createStartError(`${file} cannot be read`, error);
  }
}
