/** `npm test`: the tests that every change must pass. `npm run test:full` has the long forms. */
import { defineArguments, flag } from '../src/cli/support/arguments.js';
import { runTests, testFiles } from './support/runner/run-tests.js';
import { watchTests } from './support/runner/watch-tests.js';

const { help, read } = defineArguments({
  usage: 'npm test [-- WORD ... options]',
  about: `Runs all tests, or only the files with one of the WORDs in the name. npm run test:full runs the long forms.`,
  options: {
    watch: flag('rebuild and rerun affected unit and golden tests after each change, until Ctrl-C'),
  },
  notes: 'docs/understand/testing.md describes the folders of tests.',
  read: (values, { operands: words }) => ({ ...values, words }),
});

/**
 * Tests wait half of the time, so four processes keep two cores busy. With more, tests on a slow machine exceed the time limits
 * of clients and of the shutdown.
 */
const together = 4;
/** Twelve times the duration of the longest file. */
const limitMs = 900_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const args = read(argv);
  if (args === null) process.stdout.write(help);
  else if (args.watch) await watchTests(args.words);
  else {
    const files = testFiles('short', args.words);
    await runTests({ files, together, isolated: false, limitMs, env: {} });
  }
}
