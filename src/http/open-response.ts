/**
 * uWebSockets.js buffers writes without limit: `tryEnd` sends as much of a body as the socket accepts, and
 * each piece of a stream waits until the socket is writable. It closes a connection if a request arrives
 * before the previous response ended.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { MetricRegistry } from '../services/operations/metric-registry.js';

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

export type UnreadResponses = ReturnType<typeof createUnreadResponses>;

export function createUnreadResponses(figures: MetricRegistry, maxBytes = maxUnreadBytes) {
  /** Oldest first. */
  const responses = new Set<{ readonly bytes: number; readonly cut: () => void }>();
  let totalBytes = 0;
  let cuts = 0;
  figures.add('unread_answers_bytes', () => totalBytes);
  figures.add('unread_answers_cut_total', () => cuts);
  return {
    /**
     * Cuts the oldest responses above the limit.
     * @returns idempotent release function, which `cut` must call
     */
    register: (bytes: number, cut: () => void): (() => void) => {
      const answer = { bytes, cut };
      responses.add(answer);
      totalBytes += bytes;
      for (const first of responses) {
        if (totalBytes <= maxBytes) break;
        cuts += 1;
        first.cut();
      }
      return () => {
        if (responses.delete(answer)) totalBytes -= bytes;
      };
    },
  };
}

export const noop = (): void => undefined;

export class OpenResponse {
  /** The response was sent or aborted: do not use it any more. */
  isDone = false;
  /** Idempotent. */
  protected releaseMemory = noop;
  /** Called at the end, and when sending can continue. */
  protected onProgress = noop;

  constructor(
    protected readonly res: HttpResponse,
    private readonly unread: UnreadResponses,
  ) {}

  /** Closing calls `onAborted`, which calls this method again. */
  protected finish(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.releaseMemory();
    this.onProgress();
  }

  protected cut(): void {
    if (this.isDone) return;
    this.finish();
    this.res.close();
  }

  protected registerUnread(bytes: number): void {
    this.releaseMemory = this.unread.register(bytes, () => this.cut());
    if (this.isDone) this.releaseMemory();
  }

  /** Continues after `tryEnd`. uWebSockets.js disconnects stalled clients after 10 s. */
  protected sendRemainder(body: Uint8Array, onEnd: () => void): void {
    this.onProgress = onEnd;
    this.res.onWritable((offset) => {
      const [flows, sent] = this.res.tryEnd(body.subarray(offset), body.length);
      if (sent) this.finish();
      return flows;
    });
    this.registerUnread(body.length);
  }

  /** On an error, cuts the connection, so that a part does not look complete. @throws errors of the pieces */
  protected async sendPieces(pieces: AsyncIterable<string>): Promise<void> {
    const keptOpen = setInterval(() => {
      if (this.isDone) return;
      this.res.pause();
      this.res.resume();
    }, keepOpenMs);
    this.res.onWritable(() => {
      this.onProgress();
      return true;
    });
    try {
      for await (const piece of pieces) {
        await this.write(Buffer.from(piece));
        if (this.isDone) return;
      }
      if (this.isDone) return;
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
    for (let at = 0; at < piece.length && !this.isDone; at += chunkBytes) {
      let flows = true;
      this.res.cork(() => {
        flows = this.res.write(piece.subarray(at, at + chunkBytes));
      });
      if (!flows) await this.waitUntilWritable();
    }
  }

  private waitUntilWritable(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.cut(), stallMs);
      this.onProgress = () => {
        clearTimeout(timer);
        this.onProgress = noop;
        resolve();
      };
      if (this.isDone) this.onProgress();
    });
  }
}
