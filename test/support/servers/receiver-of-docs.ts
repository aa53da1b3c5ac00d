import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

/** The source of the receiver in docs/webhooks.md. */
export function receiverOfDocs(): string {
  const [, source] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, 'docs/webhooks.md'), 'utf8')) ?? [];
  if (source === undefined) throw new Error('docs/webhooks.md has no receiver in TypeScript');
  return source;
}
