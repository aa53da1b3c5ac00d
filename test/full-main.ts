/** `npm run test:full`: what takes too long for `npm test`. docs/testing.md says what it covers and when to run it. */
import { randomInt } from 'node:crypto';
import { defineArguments, integerOption } from '../src/cli/support/arguments.js';
import { longFormEnv } from './support/runner/long-form.js';
import { runTests, testFiles } from './support/runner/run-tests.js';

const highest = 2 ** 32 - 1;
const { help, read } = defineArguments({
  usage: 'npm run test:full [-- WORD ... options]',
  about: `Runs the tests that take too long for npm test: those of test/full, and those of test/fault in their long form,
which break the service while answers arrive and compare what is stored with what was confirmed. With WORDs,
those whose file names contain one of them.`,
  options: {
    rounds: integerOption(
      1,
      1_000_000_000,
      "how much of a fault test: rounds, cases or requests, whatever it counts (default: each test's own)",
    ),
    seed: integerOption(
      0,
      highest,
      `repeats the random choices of another run, 0 to ${highest} (default: a random one, printed)`,
    ),
  },
  notes: 'To be run before a release, and after a change of store, pipeline or warehouse.',
  read: (values, { operands: words }) => ({ ...values, words }),
});

/** They wait most of the time, and some measure memory: three keep two cores busy. */
const together = 3;
/** Two hours: a file that takes longer hangs. */
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
  await runTests({ files: testFiles('long', words), together, limitMs, env });
}
