/** For all buffers together. */
const maxBytes = 96 * 1024 * 1024;
let allBytes = 0;

/** An older body is dropped if others need its memory, so that slow senders cannot block them. */
const maxWaitMs = 10_000;

const holders = new Set<{ readonly since: number; readonly giveUp: () => void }>();

function makeRoom(bytes: number): boolean {
  for (const { since, giveUp } of holders) {
    if (allBytes + bytes <= maxBytes || performance.now() - since < maxWaitMs) break;
    giveUp();
  }
  return allBytes + bytes <= maxBytes;
}

export type ArrivingBody = ReturnType<typeof createArrivingBody>;

/**
 * One buffer per body: an object per piece would cost a hundred bytes, even for one byte.
 * @param onDropped the memory is full, or another body needs it
 */
export function createArrivingBody(most: number, onGivenUp: () => void) {
  let bytes = Buffer.alloc(0);
  let size = 0;
  let isGivenUp = false;
  /** Idempotent. */
  const forget = (): void => {
    holders.delete(holder);
    allBytes -= bytes.length;
    bytes = Buffer.alloc(0);
    size = 0;
  };
  const giveUp = (): void => {
    isGivenUp = true;
    forget();
    onGivenUp();
  };
  const holder = { since: performance.now(), giveUp };
  const grow = (least: number): void => {
    const room = Math.min(most, Math.max(least, 2 * bytes.length));
    if (!makeRoom(room - bytes.length)) giveUp();
    if (isGivenUp) return;
    holders.add(holder);
    allBytes += room - bytes.length;
    const before = bytes;
    bytes = Buffer.allocUnsafe(room);
    bytes.set(before);
  };
  return {
    add: (piece: Uint8Array): void => {
      if (size + piece.length > bytes.length) grow(size + piece.length);
      if (isGivenUp) return;
      bytes.set(piece, size);
      size += piece.length;
    },
    take: (): Buffer => {
      const all = bytes.subarray(0, size);
      forget();
      return all;
    },
    forget,
  };
}
