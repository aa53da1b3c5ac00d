import { fileURLToPath } from 'node:url';

type Program = 'api-process.js' | 'clickhouse.js' | 'engine-thread.js' | 'entry.cjs';

/** Path of a thread's or child process's bundle (src/build.mjs), by package.json's `imports`: the same whichever file asks. */
export const programPath = (name: Program): string => fileURLToPath(import.meta.resolve(`#bundle/${name}`));
