/**
 * Answers that the socket does not take at once. uWebSockets.js keeps without bound what it has to write or to end. Hence
 * `tryEnd` for a whole body, of which it takes what the socket takes; of an answer in pieces the next one waits until the
 * socket is writable. It ends a connection by itself on which a request comes before the last answer is over.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { Figures } from '../services/read/figures.js';

/** A reader that took nothing for this long is given up. */
const stallMs = 60_000;

/** uWebSockets.js cuts a connection 10 s after the last piece; a large socket buffer may take longer. Resuming puts it off. */
const keepOpenMs = 4000;

/** At most this much of a piece is given to uWebSockets.js at once. */
const chunkBytes = 64 * 1024;

/** Of unread answers, beside what a connection keeps of its own: 16 KiB of uWebSockets.js, and what the kernel took. */
const maxUnreadBytes = 64 * 1024 * 1024;

export type UnreadAnswers = ReturnType<typeof createUnreadAnswers>;

/** Bounds what is kept of answers that their readers have not taken, for all connections of a process together. */
export function createUnreadAnswers(figures: Figures, bound = maxUnreadBytes) {
  /** In the order in which they began. */
  const kept = new Set<{ readonly bytes: number; readonly cut: () => void }>();
  let all = 0;
  let cuts = 0;
  figures.add('unread_answers_bytes', () => all);
  figures.add('unread_answers_cut_total', () => cuts);
  return {
    /**
     * Beyond the bound the answers that began first are cut: one that is read is through long before.
     * @returns forgets the bytes, however often it is called; `cut` has to call it as well
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

export const nothing = (): void => undefined;

/** One response until its end, which may come early. */
export class OpenResponse {
  /** Answered or aborted: the response must not be touched any more. */
  done = false;
  /** Gives back the memory that is counted for it; may be called again. */
  protected forget = nothing;
  /** Called when it is done, by whomever, and by what somebody waits for. */
  protected wake = nothing;

  constructor(
    protected readonly res: HttpResponse,
    private readonly unread: UnreadAnswers,
  ) {}

  /** Closing a connection calls `onAborted`, and so comes back here. */
  protected finish(): void {
    if (this.done) return;
    this.done = true;
    this.forget();
    this.wake();
  }

  protected cut(): void {
    if (this.done) return;
    this.finish();
    this.res.close();
  }

  /** Counts what is kept of an answer until it is over. */
  protected keepUnread(bytes: number): void {
    this.forget = this.unread.keep(bytes, () => this.cut());
    // It may have been cut at once.
    if (this.done) this.forget();
  }

  /**
   * Sends the rest of a body that was begun with `tryEnd`. Who takes nothing for 10 s is cut by uWebSockets.js.
   * @param over called when all is sent, or the client is gone or given up
   */
  protected sendRest(body: Uint8Array, over: () => void): void {
    this.wake = over;
    this.res.onWritable((offset) => {
      const [flows, sent] = this.res.tryEnd(body.subarray(offset), body.length);
      if (sent) this.finish();
      return flows;
    });
    this.keepUnread(body.length);
  }

  /**
   * Sends the pieces behind a head that was written before, until they or the client end.
   * @throws what the pieces throw; the connection is cut then, so that nobody takes what came for the whole
   */
  protected async sendPieces(pieces: AsyncIterable<string>): Promise<void> {
    const keptOpen = setInterval(() => {
      if (this.done) return;
      this.res.pause();
      this.res.resume();
    }, keepOpenMs);
    this.res.onWritable(() => {
      this.wake();
      return true;
    });
    try {
      for await (const piece of pieces) {
        await this.write(Buffer.from(piece));
        if (this.done) return;
      }
      if (this.done) return;
      this.finish();
      this.res.cork(() => this.res.end());
    } catch (error) {
      this.cut();
      throw error;
    } finally {
      clearInterval(keptOpen);
    }
  }

  private async write(piece: Buffer): Promise<void> {
    for (let at = 0; at < piece.length && !this.done; at += chunkBytes) {
      let flows = true;
      this.res.cork(() => {
        flows = this.res.write(piece.subarray(at, at + chunkBytes));
      });
      if (!flows) await this.writableAgain();
    }
  }

  /** Resolves as well when the response is done. */
  private writableAgain(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.cut(), stallMs);
      this.wake = () => {
        clearTimeout(timer);
        this.wake = nothing;
        resolve();
      };
      if (this.done) this.wake();
    });
  }
}
