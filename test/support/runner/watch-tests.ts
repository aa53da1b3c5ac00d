/** `npm test -- --watch`: rebuilds on changes and runs the affected tests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { root } from './root.js';
import { compiledPath, isPure, sourceMaps, testFiles } from './run-tests.js';

/** Returns after a signal, or when the build or the runner ends. @throws StartError if no file matches */
export async function watchTests(words: readonly string[]): Promise<void> {
  const files = testFiles('short', words, isPure).map(compiledPath);
  const run = (...args: string[]) => spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
  const programs = [
    run('src/build.mjs', 'dist', '--watch'),
    run(sourceMaps, '--test', '--watch', '--test-reporter=spec', ...files),
  ];
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => programs.forEach((program) => void program.kill(signal)));
  await Promise.race(programs.map((program) => once(program, 'close')));
  for (const program of programs) program.kill();
}
