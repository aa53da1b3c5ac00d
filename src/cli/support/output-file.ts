import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartError } from '../../lifecycle.js';
import { option } from './arguments.js';

/** Checks before the work that the file can be written. The value is its absolute path. */
export const outputOption = (placeholder: string, about: string) =>
  option(placeholder, about, (path, name) => {
    try {
      return findTarget(path);
    } catch (cause) {
      throw createOutputError(name, path, cause);
    }
  });

function findTarget(path: string): string {
  const target = resolve(path);
  accessSync(dirname(target), constants.W_OK);
  const existing = statSync(target, { throwIfNoEntry: false });
  if (target.endsWith('.parquet') && /[*?{}]/.test(target))
    throw new Error('the path of a Parquet file cannot contain *, ?, { or }');
  if (existing === undefined) return target;
  if (!existing.isFile())
    throw new Error(existing.isDirectory() ? 'it is a directory' : 'it is not a regular file');
  accessSync(target, constants.W_OK);
  return realpathSync(target);
}

/** @param name of the option, with its dashes @throws StartError if the work fails */
export async function writeOutput(
  name: string,
  path: string,
  work: () => Promise<void> | void,
): Promise<void> {
  try {
    await work();
  } catch (cause) {
    throw createOutputError(name, path, cause);
  }
}

function createOutputError(name: string, path: string, cause: unknown): StartError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StartError(`${name} ${path} cannot be written: ${reason}`, { cause });
}
