import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { resolveProgram } from '../programs.js';

export class LocalQueryError extends Error {}

export interface LocalQuery {
  readonly sql: string;
  /**
   * Of the result; '' for a statement without one. Each chunk is a separate output, so formats with a header or a footer
   * need a statement that writes a file.
   */
  readonly format: string;
  /** Bytes of `file('stdin', …)`. */
  readonly input?: AsyncIterable<Buffer> | undefined;
}

/**
 * Runs a query on local files in a ClickHouse engine in a separate process. Needs no server.
 * @returns chunks of the result @throws LocalQueryError with the message of the engine; errors of `input`
 */
export async function* streamLocalQuery({ sql, format, input }: LocalQuery): AsyncGenerator<Buffer> {
  const failures = { input: null as Error | null, engine: '' };
  const folder = await mkdtemp(join(tmpdir(), 'skilltrace-query-'));
  const program = resolveProgram('local-query.js');
  await writeFile(join(folder, 'query.sql'), sql);
  const child = spawn(process.execPath, [program, folder, format], { stdio: 'pipe' });
  const exit = once(child, 'close');
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    failures.engine += text;
  });
  const recordError = (error: Error): void => {
    failures.input = error;
  };
  // If the engine stops reading before the end, the pipeline fails too.
  pipeline(catchErrors(input, recordError), child.stdin).catch(() => undefined);
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const [code, signal] = await exit;
    if (failures.input !== null) throw failures.input;
    if (code !== 0)
      throw new LocalQueryError(failures.engine.trim() || `the engine ended (${signal ?? code})`);
  } finally {
    child.kill('SIGKILL');
    await exit;
    await rm(folder, { recursive: true, force: true });
  }
}

async function* catchErrors(input: LocalQuery['input'], onError: (error: Error) => void) {
  try {
    if (input !== undefined) yield* input;
  } catch (error) {
    onError(error as Error);
  }
}
