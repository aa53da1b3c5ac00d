/** `npm test`: every test, the fault tests in their short form. */
import { StartError } from '../src/lifecycle.js';
import { runTests, testFiles } from './support/run-tests.js';

const help = `Usage: npm test [-- WORD ...]

Runs all tests, or those whose file names contain one of the WORDs.
`;

/** Tests wait most of the time, for timers of the service and for ClickHouse: two files leave two cores idle. */
const together = 4;
/** Three times what the longest file took on a busy machine; it only bounds one that hangs. */
const limitMs = 1_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  if (argv.some((arg) => arg === '--help' || arg === '-h')) {
    process.stdout.write(help);
    return;
  }
  const option = argv.find((arg) => arg.startsWith('-'));
  if (option !== undefined) throw new StartError(`${option}: there are no such options; --help explains`);
  await runTests({ files: testFiles(argv), together, limitMs, env: {} });
}
