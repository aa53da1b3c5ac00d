/** `npm run test:fault`: the fault tests in their long form. */
import { randomInt } from 'node:crypto';
import { parseArguments, readInteger, usageOf } from '../src/cli/arguments.js';
import { longFormEnv } from './support/long-form.js';
import { runTests, testFiles } from './support/run-tests.js';

const help = `Usage: npm run test:fault [-- WORD ... options]

Breaks the service while answers arrive and compares what is stored with what was confirmed: the tests of
test/fault in their long form, or those whose file names contain one of the WORDs. npm test runs them in a
short form.

Options:
  --rounds N  how much of it: rounds, cases or requests, whatever the test counts (default: each test's own)
  --seed S    repeats the random choices of another run, 0 to 4294967295 (default: a random one, printed)
  --help      this text
`;
const usage = usageOf('npm run test:fault [-- WORD ... options]');
const highest = 2 ** 32 - 1;
/** Two hours: a file that takes longer hangs. */
const limitMs = 7_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArguments(usage, argv, {
    rounds: { type: 'string' },
    seed: { type: 'string' },
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
  await runTests({ files: testFiles(positionals, 'fault'), together: 1, limitMs, env });
}
