/** `npm run test:full`: what takes too long for `npm test`. docs/testing.md says what it covers and when to run it. */
import { randomInt } from 'node:crypto';
import { parseArguments, readInteger, usageOf } from '../src/cli/arguments.js';
import { longFormEnv } from './support/long-form.js';
import { runTests, testFiles } from './support/run-tests.js';

const help = `Usage: npm run test:full [-- WORD ... options]

Runs the tests that take too long for npm test: those of test/full, and those of test/fault in their long form,
which break the service while answers arrive and compare what is stored with what was confirmed. With WORDs,
those whose file names contain one of them. To be run before a release, and after a change of store, pipeline
or warehouse.

Options:
  --rounds N  how much of a fault test: rounds, cases or requests, whatever it counts (default: each test's own)
  --seed S    repeats the random choices of another run, 0 to 4294967295 (default: a random one, printed)
  --figures   tells in the end what each suite started and took, as a table
  --help      this text
`;
const usage = usageOf('npm run test:full [-- WORD ... options]');
const highest = 2 ** 32 - 1;
/** They wait most of the time, and some measure memory: three keep two cores busy. */
const together = 3;
/** Two hours: a file that takes longer hangs. */
const limitMs = 7_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArguments(usage, argv, {
    rounds: { type: 'string' },
    seed: { type: 'string' },
    figures: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const rounds =
    values.rounds === undefined ? null : readInteger(usage, '--rounds', values.rounds, 1, 1_000_000_000);
  const seed =
    values.seed === undefined ? randomInt(highest) : readInteger(usage, '--seed', values.seed, 0, highest);
  const env = longFormEnv({ rounds, seed, progress: process.stderr.isTTY });
  await runTests({ files: testFiles('long', positionals), together, limitMs, env, figures: values.figures });
}
