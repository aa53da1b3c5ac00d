import { fileURLToPath } from 'node:url';

/** How Piscina starts threads of ours. */
export const workerEntry = (name: 'track' | 'forecast' | 'fit' | 'rebuild' | 'takeBack') => ({
  filename: fileURLToPath(new URL('../../workers/entry.cjs', import.meta.url)),
  name,
});
