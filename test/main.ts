/** `npm test`: what everybody runs before a change is taken, in minutes; `npm run test:full` has the long forms. */
import { parseArguments, usageOf } from '../src/cli/arguments.js';
import { runTests, testFiles } from './support/run-tests.js';
import { watchTests } from './support/watch-tests.js';

const help = `Usage: npm test [-- WORD ... options]

Runs the tests, or those whose file names contain one of the WORDs. Long forms, and what breaks servers for
minutes, are in npm run test:full.

Options:
  --watch    builds and runs again what a change concerns, until Ctrl-C; unit and golden tests only
  --figures  tells in the end what each suite started and took, as a table
  --help     this text
`;
const usage = usageOf('npm test [-- WORD ... options]');

/** Tests wait most of the time, for timers of the service and for ClickHouse: few files leave cores idle. */
const together = 7;
/** Three times what the longest file took on a busy machine; it only bounds one that hangs. */
const limitMs = 1_200_000;

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals: words } = parseArguments(usage, argv, {
    watch: { type: 'boolean', default: false },
    figures: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) process.stdout.write(help);
  else if (values.watch) await watchTests(words);
  else
    await runTests({ files: testFiles('short', words), together, limitMs, env: {}, figures: values.figures });
}
