/** `npm test -- --watch`: builds what changes, and lets Node's test runner run what that concerns. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { root } from './root.js';
import { compiledPath, isPure, sourceMaps, testFiles } from './run-tests.js';

/** Ends with a signal, or when one of the two programs ends. @throws StartError where no file is meant */
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
