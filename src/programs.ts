import { fileURLToPath } from 'node:url';

type Program = 'api-process.js' | 'clickhouse.js' | 'engine-thread.js' | 'entry.cjs' | 'local-query.js';

/** Resolved by package.json's `imports`, independent of the calling file. */
export const resolveProgram = (name: Program): string =>
  fileURLToPath(import.meta.resolve(`#bundle/${name}`));
