import { programPath } from '../programs.js';

/** How Piscina starts threads of ours. */
export const workerEntry = (name: 'track' | 'forecast' | 'fit' | 'rebuild' | 'takeBack') => ({
  filename: programPath('entry.cjs'),
  name,
});
