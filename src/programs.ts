/** What the build makes to be started by path: threads and child processes (src/build.mjs has the list). */
import { fileURLToPath } from 'node:url';

type Program = 'api-process.js' | 'clickhouse.js' | 'engine-thread.js' | 'entry.cjs';

/**
 * Path of a program's bundle. Node looks it up by package.json's `imports`, whichever file asks: the code of this one stands
 * in bundles and, for tests, in a module of its own.
 */
export const programPath = (name: Program): string => fileURLToPath(import.meta.resolve(`#bundle/${name}`));
