/** `npm test`: what everybody runs before a change is taken, in minutes; `npm run test:full` has the long forms. */
import { defineArguments, flag } from '../src/cli/support/arguments.js';
import { runTests, testFiles } from './support/runner/run-tests.js';
import { watchTests } from './support/runner/watch-tests.js';

const { help, read } = defineArguments({
  usage: 'npm test [-- WORD ... options]',
  about: `Runs the tests, or those whose file names contain one of the WORDs. Long forms, and what breaks servers for
minutes, are in npm run test:full.`,
  options: {
    watch: flag('builds and runs again what a change concerns, until Ctrl-C; unit and golden tests only'),
  },
  notes: 'docs/testing.md says what each folder of tests is for.',
  read: (values, { operands: words }) => ({ ...values, words }),
});

/**
 * Three files keep two cores busy. With five the run takes as long, and on a slow machine tests exceed the time limits of
 * clients and of the shutdown.
 */
const together = 3;
/** Three times what the longest file took on a busy machine; it only bounds one that hangs. */
const limitMs = 1_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const args = read(argv);
  if (args === null) process.stdout.write(help);
  else if (args.watch) await watchTests(args.words);
  else {
    const files = testFiles('short', args.words);
    await runTests({ files, together, limitMs, env: {} });
  }
}
