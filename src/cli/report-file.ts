/** The page that a command writes with --report. */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartError } from '../lifecycle.js';

/** The page is written at the end of a long run: where it cannot be, that shows at the beginning. */
export function checkReportPlace(path: string): string {
  const place = resolve(path);
  try {
    accessSync(dirname(place), constants.W_OK);
    const there = statSync(place, { throwIfNoEntry: false });
    if (there?.isDirectory()) throw new Error('it is a folder');
    if (there !== undefined) accessSync(place, constants.W_OK);
    return place;
  } catch (error) {
    throw unwritableReport(path, error);
  }
}

function unwritableReport(path: string, cause: unknown): StartError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StartError(`--report ${path} cannot be written: ${reason}`, { cause });
}

/** Its place was looked at before the run; a disk may be full by now. The figures are printed then. */
export function writeReport(path: string, page: string): void {
  try {
    writeFileSync(path, page);
  } catch (cause) {
    throw unwritableReport(path, cause);
  }
}
