/**
 * Answers that the socket does not take at once. Only exchange.ts calls this; beside it, nothing else touches HttpResponse.
 *
 * What uWebSockets.js is told to write or to end, it keeps without bound until the client has read it. Hence `tryEnd` for
 * a whole body, of which it takes what the socket takes; and for an answer in pieces the next one waits until the socket
 * is writable again, so that what is kept for a slow reader is a chunk. A request that comes on a connection whose answer
 * is not over ends the connection: uWebSockets.js does that by itself.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { UnreadAnswers } from './unread-answers.js';

/** One response until its end, which may come early. */
export interface ResponseState {
  readonly unread: UnreadAnswers;
  /** Answered or aborted: the response must not be touched any more. */
  done: boolean;
  /** Gives back the memory that is counted for it, however often it is called. */
  forget: () => void;
  /** Called when it is done, by whomever. */
  wake: () => void;
}

export function finish(state: ResponseState): void {
  state.done = true;
  state.forget();
  state.wake();
}

export function cut(res: HttpResponse, state: ResponseState): void {
  if (state.done) return;
  finish(state);
  res.close();
}

/** Counts what is kept of an answer until it is over. */
export function keepUnread(res: HttpResponse, state: ResponseState, bytes: number): void {
  state.forget = state.unread.keep(bytes, () => cut(res, state));
  // It may have been cut at once.
  if (state.done) state.forget();
}

/** A reader that took nothing for this long is given up. */
const stallMs = 60_000;

/**
 * uWebSockets.js cuts a connection 10 s after the last piece, and a large socket buffer may take a slow reader longer
 * than that. There is no call that puts it off but this pair.
 */
const keepOpenMs = 4000;

/** At most this much of a piece is given to uWebSockets.js at once. */
const chunkBytes = 64 * 1024;

/**
 * Sends what the socket did not take of a body that was begun with `tryEnd`, as the client reads it. uWebSockets.js
 * closes the connection of one who takes nothing for 10 s.
 *
 * @returns resolves when all is sent, or the client is gone or given up
 */
export function sendRest(res: HttpResponse, state: ResponseState, body: Buffer): Promise<void> {
  return new Promise((resolve) => {
    state.wake = resolve;
    res.onWritable((offset) => {
      const [flows, sent] = res.tryEnd(body.subarray(offset), body.length);
      if (sent) finish(state);
      return flows;
    });
    keepUnread(res, state, body.length);
  });
}

/**
 * Sends the pieces behind a head that was written before, until they or the client end.
 *
 * @param hasToClose asked at the end: whether the connection cannot stay
 * @throws what the pieces throw; the connection is cut then, so that nobody takes what came for the whole
 */
export async function sendPieces(
  res: HttpResponse,
  state: ResponseState,
  pieces: AsyncIterable<string>,
  hasToClose: () => boolean,
): Promise<void> {
  const keptOpen = setInterval(() => {
    if (state.done) return;
    res.pause();
    res.resume();
  }, keepOpenMs);
  try {
    await writeAll(res, state, pieces);
    if (state.done) return;
    finish(state);
    res.cork(() => res.end(undefined, hasToClose()));
  } catch (error) {
    cut(res, state);
    throw error;
  } finally {
    clearInterval(keptOpen);
  }
}

async function writeAll(
  res: HttpResponse,
  state: ResponseState,
  pieces: AsyncIterable<string>,
): Promise<void> {
  res.onWritable(() => {
    state.wake();
    return true;
  });
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      if (state.done) return;
      let flows = true;
      res.cork(() => {
        flows = res.write(bytes.subarray(at, at + chunkBytes));
      });
      if (!flows) await writableAgain(res, state);
    }
    if (state.done) return;
  }
}

/** Resolves as well when the response is done. */
function writableAgain(res: HttpResponse, state: ResponseState): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(cut, stallMs, res, state);
    state.wake = () => {
      clearTimeout(timer);
      state.wake = () => undefined;
      resolve();
    };
    if (state.done) state.wake();
  });
}
