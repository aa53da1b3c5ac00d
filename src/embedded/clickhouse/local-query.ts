/** Program: runs the query of argv in a ClickHouse engine without a server, and writes its result to stdout. */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { Session } from 'chdb';
import { toFailure } from './errors.js';

const [dataDir = '', query = '', format = ''] = process.argv.slice(2);

// The parent removes the folder too, except if it was killed.
process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
// The reader has ended, so nothing needs the result.
process.stdout.on('error', () => process.exit(1));

const session = new Session(dataDir);
try {
  // `raw` is valid only until the next chunk.
  for await (const chunk of session.queryStream(query, { format }))
    if (!process.stdout.write(Uint8Array.from(chunk.raw()))) await once(process.stdout, 'drain');
  // The engine's threads can delay the end of the process.
  process.stdout.end(() => process.exit(0));
} catch (error) {
  process.stderr.write(toFailure(error).body, () => process.exit(1));
}
