/** `npm run test:full`: tests that take too long for `npm test` (docs/understand/testing.md). */
import { randomInt } from 'node:crypto';
import { defineArguments, integerOption } from '../src/cli/support/arguments.js';
import { longFormEnv } from './support/runner/long-form.js';
import { runTests, testFiles } from './support/runner/run-tests.js';

const highest = 2 ** 32 - 1;
const { help, read } = defineArguments({
  usage: 'npm run test:full [-- WORD ... options]',
  about: `Runs the tests that take too long for npm test: test/full, and the long forms of other tests. The fault tests break
the service while answers arrive, and compare stored with confirmed answers. With WORDs, runs only the files with one
of them in the name.`,
  options: {
    rounds: integerOption(
      1,
      1_000_000_000,
      'size of a fault test: rounds, cases or requests, depending on the test',
    ),
    seed: integerOption(
      0,
      highest,
      `repeats the random choices of another run, 0 to ${highest} (default: random, printed)`,
    ),
  },
  notes: 'Run it before a release, and after a change of store, pipeline or warehouse.',
  read: (values, { operands: words }) => ({ ...values, words }),
});

/** Three processes keep two cores busy: these tests mostly wait. */
const together = 3;
/** Two hours. */
const limitMs = 7_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const args = read(argv);
  if (args === null) {
    process.stdout.write(help);
    return;
  }
  const { rounds, words } = args;
  const env = longFormEnv({
    rounds,
    seed: args.seed ?? randomInt(highest),
    progress: process.stderr.isTTY,
  });
  // Some of them measure the memory of their process.
  await runTests({ files: testFiles('long', words), together, isolated: true, limitMs, env });
}
