/**
 * uWebSockets.js buffers writes without limit: `tryEnd` sends as much of a body as the socket accepts, and
 * each piece of a stream waits until the socket is writable. It closes a connection if a request arrives
 * before the previous response ended.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { Figures } from '../services/read/figures.js';

/** A client that reads nothing for this long is disconnected. */
const stallMs = 60_000;

/**
 * uWebSockets.js closes a connection 10 s after the last piece, too early for large socket buffers. Pausing
 * and resuming postpones this.
 */
const keepOpenMs = 4000;

const chunkBytes = 64 * 1024;

/** Does not include the buffers of uWebSockets.js (16 KiB per connection) and the kernel. */
const maxUnreadBytes = 64 * 1024 * 1024;

export type UnreadAnswers = ReturnType<typeof createUnreadAnswers>;

export function createUnreadAnswers(figures: Figures, bound = maxUnreadBytes) {
  const kept = new Set<{ readonly bytes: number; readonly cut: () => void }>();
  let all = 0;
  let cuts = 0;
  figures.add('unread_answers_bytes', () => all);
  figures.add('unread_answers_cut_total', () => cuts);
  return {
    /**
     * Cuts the oldest responses above the limit.
     * @returns idempotent release function, which `cut` must call
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

export class OpenResponse {
  /** The response was sent or aborted: do not use it any more. */
  done = false;
  /** Idempotent. */
  protected forget = nothing;
  /** Called at the end, and when sending can continue. */
  protected wake = nothing;

  constructor(
    protected readonly res: HttpResponse,
    private readonly unread: UnreadAnswers,
  ) {}

  /** Closing calls `onAborted`, which calls this method again. */
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

  protected keepUnread(bytes: number): void {
    this.forget = this.unread.keep(bytes, () => this.cut());
    if (this.done) this.forget();
  }

  /** Continues after `tryEnd`. uWebSockets.js disconnects stalled clients after 10 s. */
  protected sendRest(body: Uint8Array, over: () => void): void {
    this.wake = over;
    this.res.onWritable((offset) => {
      const [flows, sent] = this.res.tryEnd(body.subarray(offset), body.length);
      if (sent) this.finish();
      return flows;
    });
    this.keepUnread(body.length);
  }

  /** On an error, cuts the connection, so that a part does not look complete. @throws errors of the pieces */
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
