// A process that opens a data folder, for tests that race or kill it: prints "owner" or the error and waits.
import { openDataDir } from '../../../src/embedded/data-dir.js';

const [, , path = '.'] = process.argv;
try {
  await openDataDir(path, 1_000);
  process.stdout.write('owner\n');
  setInterval(() => undefined, 60_000);
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
