/** Program: runs the query in the file `query.sql` of a folder in a ClickHouse engine, and writes the result to stdout. */
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Session } from 'chdb';
import { toFailure } from './errors.js';

const [dataDir = '', format = ''] = process.argv.slice(2);
// A query can be longer than an argument may be.
const query = readFileSync(join(dataDir, 'query.sql'), 'utf8');

// The parent removes the folder too, except if it was killed.
process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
// The reader has ended, so nothing needs the result.
process.stdout.on('error', () => process.exit(1));

const session = new Session(dataDir);
try {
  // A statement cannot be streamed.
  if (format === '') await session.queryAsync(query);
  // `raw` is valid only until the next chunk.
  else
    for await (const chunk of session.queryStream(query, { format }))
      if (!process.stdout.write(Uint8Array.from(chunk.raw()))) await once(process.stdout, 'drain');
  // The engine's threads can delay the end of the process.
  process.stdout.end(() => process.exit(0));
} catch (error) {
  process.stderr.write(toFailure(error).body, () => process.exit(1));
}
