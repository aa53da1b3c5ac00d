/**
 * An answer of any length, in pieces. Only exchange.ts calls this; beside it, nothing else touches HttpResponse.
 *
 * uWebSockets.js takes every piece and keeps what the client has not read yet, so the next one waits until it says that
 * the socket is writable again: what is kept for a slow reader is one piece.
 */
import type { HttpResponse } from 'uWebSockets.js';

/** How one response may end early; both parts belong to the exchange. */
export interface StreamState {
  /** Answered or aborted: the response must not be touched any more. */
  done: boolean;
  /** Called once when it is done, by whomever. */
  wake: () => void;
}

/** A reader that took nothing for this long is given up. */
const stallMs = 60_000;

/**
 * uWebSockets.js cuts a connection 10 s after the last piece, and a large socket buffer may take a slow reader longer
 * than that. There is no call that puts it off but this pair.
 */
const keepOpenMs = 4000;

/**
 * Sends the pieces behind a head that was written before, until they or the client end.
 *
 * @param finish marks the response as done, before its end or its close; tells whether the connection has to close
 * @throws what the pieces throw; the connection is cut then, so that nobody takes what came for the whole
 */
export async function sendPieces(
  res: HttpResponse,
  state: StreamState,
  pieces: AsyncIterable<string>,
  finish: () => boolean,
): Promise<void> {
  const cut = (): void => {
    if (state.done) return;
    finish();
    res.close();
  };
  const keptOpen = setInterval(() => {
    if (state.done) return;
    res.pause();
    res.resume();
  }, keepOpenMs);
  try {
    await writeAll(res, state, pieces, cut);
    if (state.done) return;
    const close = finish();
    res.cork(() => res.end(undefined, close));
  } catch (error) {
    cut();
    throw error;
  } finally {
    clearInterval(keptOpen);
  }
}

async function writeAll(
  res: HttpResponse,
  state: StreamState,
  pieces: AsyncIterable<string>,
  cut: () => void,
): Promise<void> {
  res.onWritable(() => {
    state.wake();
    return true;
  });
  for await (const piece of pieces) {
    if (state.done) return;
    let flows = true;
    res.cork(() => {
      flows = res.write(piece);
    });
    if (!flows) await writableAgain(state, cut);
    if (state.done) return;
  }
}

/** Resolves as well when the response is done. */
function writableAgain(state: StreamState, cut: () => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(cut, stallMs);
    state.wake = () => {
      clearTimeout(timer);
      state.wake = () => undefined;
      resolve();
    };
    if (state.done) state.wake();
  });
}
