// Loaded into a service by NODE_OPTIONS. A worker thread that parses JSON with this word loops forever.
import { isMainThread } from 'node:worker_threads';

export const endlessWord = 'never-ends';

if (!isMainThread) {
  const parse = JSON.parse;
  JSON.parse = (text: string, ...rest: []) => {
    if (text.includes(endlessWord)) for (;;);
    return parse(text, ...rest);
  };
}
