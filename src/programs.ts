import { fileURLToPath } from 'node:url';

type Program = 'api-process.js' | 'clickhouse.js' | 'engine-thread.js' | 'entry.cjs';

/** Path of a bundle, resolved by package.json's `imports`, so that it is independent of the calling file. */
export const programPath = (name: Program): string => fileURLToPath(import.meta.resolve(`#bundle/${name}`));
