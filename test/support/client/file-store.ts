/** Unsent answers in a file: one line for each added answer, and one for each removed answer. */
import { appendFile, readFile } from 'node:fs/promises';
import type { AnswerStore, StoredAnswer } from '../../../src/client/index.js';

export function fileStore(file: string): AnswerStore {
  const append = (kind: 'add' | 'remove', answers: readonly StoredAnswer[]): Promise<void> =>
    appendFile(file, answers.map((stored) => `${JSON.stringify({ kind, stored })}\n`).join(''));
  return {
    load: async () => {
      const open = new Map<string, StoredAnswer>();
      const text = await readFile(file, 'utf8').catch(() => '');
      // A kill can cut the last line short: its answer was never confirmed.
      for (const line of text.split('\n').slice(0, -1)) {
        const { kind, stored } = JSON.parse(line);
        if (kind === 'add') open.set(stored.answer.event_id, stored);
        else open.delete(stored.answer.event_id);
      }
      return [...open.values()];
    },
    add: (answers) => append('add', answers),
    remove: (answers) => append('remove', answers),
  };
}
