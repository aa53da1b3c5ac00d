/** Opens answer logs with the options of `npm run import`. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openAnswerLog } from '../../../src/cli/answer-log/open-log.js';
import { readLog } from '../../../src/cli/answer-log/read-log.js';
import { importArguments } from '../../../src/cli/import/import.js';
import { createClosers } from '../../../src/lifecycle.js';
import { createLogger } from '../../../src/logger.js';
import type { ReadOptions } from '../../../src/services/answer-log/options.js';
import type { Scoped } from '../scope.js';
import { tempDir } from '../temp.js';

/** Files by path in the folder. */
export type LogFiles = Readonly<Record<string, string | Buffer>>;

/** @returns the folder */
export async function writeFiles(t: Scoped, files: LogFiles): Promise<string> {
  const folder = await tempDir(t);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

export const writeLog = async (t: Scoped, content: string | Buffer): Promise<string> =>
  join(await writeFiles(t, { answers: content }), 'answers');

export function parseReadOptions(...argv: readonly string[]): ReadOptions {
  const args = importArguments.read(['FILE', ...argv]);
  assert.ok(args !== null);
  return args.options;
}

const context = {
  closers: createClosers(createLogger('silent', 'test')),
  showProgress: (): void => undefined,
};

/** @returns the file and its profile, with the first ten answers */
export async function profileFile(path: string, ...argv: readonly string[]) {
  const log = await openAnswerLog(path, parseReadOptions(...argv));
  const read = await readLog(log, context);
  assert.ok(read !== null);
  return { log, ...read };
}

/** @returns rows with their place and line */
export async function readRows(path: string, ...argv: readonly string[]) {
  const log = await openAnswerLog(path, parseReadOptions(...argv));
  const rows = [];
  for await (const page of log.readPages(Date.now(), () => undefined)) rows.push(...page.rows);
  return rows;
}
