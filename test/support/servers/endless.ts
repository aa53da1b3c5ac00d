// Loaded into a service's threads by NODE_OPTIONS: what is parsed in one of them and holds the word never ends.
import { isMainThread } from 'node:worker_threads';

export const endlessWord = 'never-ends';

if (!isMainThread) {
  const parse = JSON.parse;
  JSON.parse = (text: string, ...rest: []) => {
    if (text.includes(endlessWord)) for (;;);
    return parse(text, ...rest);
  };
}
