/** What is kept of answers that their readers have not taken, bounded for all connections together. */
import type { Figures } from '../services/read/figures.js';

/** Beside what a connection keeps of its own: 16 KiB of uWebSockets.js, and what the kernel took. */
const maxBytes = 64 * 1024 * 1024;

export type UnreadAnswers = ReturnType<typeof createUnreadAnswers>;

/** One for all connections of a process. */
export function createUnreadAnswers(figures: Figures, bound = maxBytes) {
  /** In the order in which they began. */
  const kept = new Set<{ readonly bytes: number; readonly cut: () => void }>();
  let all = 0;
  let cuts = 0;
  figures.add({
    name: 'unread_answers_bytes',
    help: 'What is kept of answers that their readers have not taken yet',
    type: 'gauge',
    read: () => all,
  });
  figures.add({
    name: 'unread_answers_cut_total',
    help: 'Answers whose readers stood still while too much was kept for all, so that their connections were cut',
    type: 'counter',
    read: () => cuts,
  });
  return {
    /**
     * Counts what is kept of an answer. Where all are more than the bound, those that began first are cut: an answer
     * that is read is through long before.
     *
     * @param cut ends the answer and its connection
     * @returns forgets the bytes, however often it is called; to be called as well by `cut`
     */
    keep: (bytes: number, cut: () => void): (() => void) => {
      const answer = { bytes, cut };
      kept.add(answer);
      all += bytes;
      for (const first of kept) {
        if (all <= bound) break;
        cuts += 1;
        first.cut();
      }
      return () => {
        if (kept.delete(answer)) all -= bytes;
      };
    },
  };
}
