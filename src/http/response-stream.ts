/**
 * Answers that the socket does not take at once. Only exchange.ts calls this; beside it, nothing else touches HttpResponse.
 *
 * What uWebSockets.js has to write or to end, it keeps without bound until the client has read it. Hence `tryEnd` for
 * a whole body, of which it takes what the socket takes; and for an answer in pieces the next one waits until the socket
 * is writable again, so that what is kept for a slow reader is a chunk. A request that comes on a connection whose answer
 * is not over ends the connection: uWebSockets.js does that by itself.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { UnreadAnswers } from './unread-answers.js';

/** A reader that took nothing for this long is given up. */
const stallMs = 60_000;

/**
 * uWebSockets.js cuts a connection 10 s after the last piece, and a large socket buffer may take a slow reader longer
 * than that. There is no call that puts it off but this pair.
 */
const keepOpenMs = 4000;

/** At most this much of a piece is given to uWebSockets.js at once. */
const chunkBytes = 64 * 1024;

export const nothing = (): void => undefined;

/** One response until its end, which may come early. */
export class OpenResponse {
  /** Answered or aborted: the response must not be touched any more. */
  done = false;
  /** Gives back the memory that is counted for it, however often it is called. */
  protected forget = nothing;
  /** Called when it is done, by whomever. */
  private wake = nothing;

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
   * Sends what the socket did not take of a body that was begun with `tryEnd`, as the client reads it. uWebSockets.js
   * closes the connection of one who takes nothing for 10 s.
   *
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
   *
   * @param hasToClose asked at the end: whether the connection cannot stay
   * @throws what the pieces throw; the connection is cut then, so that nobody takes what came for the whole
   */
  protected async sendPieces(pieces: AsyncIterable<string>, hasToClose: () => boolean): Promise<void> {
    const keptOpen = setInterval(() => {
      if (this.done) return;
      this.res.pause();
      this.res.resume();
    }, keepOpenMs);
    try {
      await this.writeAll(pieces);
      if (this.done) return;
      this.finish();
      this.res.cork(() => this.res.end(undefined, hasToClose()));
    } catch (error) {
      this.cut();
      throw error;
    } finally {
      clearInterval(keptOpen);
    }
  }

  private async writeAll(pieces: AsyncIterable<string>): Promise<void> {
    this.res.onWritable(() => {
      this.wake();
      return true;
    });
    for await (const piece of pieces) {
      const bytes = Buffer.from(piece);
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        if (this.done) return;
        let flows = true;
        this.res.cork(() => {
          flows = this.res.write(bytes.subarray(at, at + chunkBytes));
        });
        if (!flows) await this.writableAgain();
      }
      if (this.done) return;
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
