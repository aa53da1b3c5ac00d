/** Statements that write files of the engine, for example Parquet. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../runner/root.js';

const program = `import { Session } from 'chdb';
await new Session(process.argv[1]).queryAsync(process.argv[2]);
process.exit(0);`;

/** Runs a statement without result in an engine in its own process. */
export async function runLocalStatement(sql: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'skilltrace-statement-'));
  const args = ['--input-type=module', '--eval', program, folder, sql];
  await promisify(execFile)(process.execPath, args, { cwd: root });
  await rm(folder, { recursive: true, force: true });
}
