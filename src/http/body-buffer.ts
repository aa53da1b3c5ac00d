/** For all buffers together. */
const maxBytes = 96 * 1024 * 1024;
let usedBytes = 0;

/** An older body is dropped if others need its memory, so that slow senders cannot block them. */
const protectedMs = 10_000;

/** Oldest first. */
const openBuffers = new Set<{ readonly since: number; readonly drop: () => void }>();

function reserveMemory(bytes: number): boolean {
  for (const { since, drop } of openBuffers) {
    if (usedBytes + bytes <= maxBytes || performance.now() - since < protectedMs) break;
    drop();
  }
  return usedBytes + bytes <= maxBytes;
}

export type BodyBuffer = ReturnType<typeof createBodyBuffer>;

/**
 * One buffer per body: an object per piece would cost a hundred bytes, even for one byte.
 * @param onDropped the memory is full, or another body needs it
 */
export function createBodyBuffer(maxSize: number, onDropped: () => void) {
  let bytes = Buffer.alloc(0);
  let size = 0;
  let isDropped = false;
  /** Idempotent. */
  const release = (): void => {
    openBuffers.delete(entry);
    usedBytes -= bytes.length;
    bytes = Buffer.alloc(0);
    size = 0;
  };
  const drop = (): void => {
    isDropped = true;
    release();
    onDropped();
  };
  const entry = { since: performance.now(), drop };
  const grow = (least: number): void => {
    const room = Math.min(maxSize, Math.max(least, 2 * bytes.length));
    if (!reserveMemory(room - bytes.length)) drop();
    if (isDropped) return;
    openBuffers.add(entry);
    usedBytes += room - bytes.length;
    const before = bytes;
    bytes = Buffer.allocUnsafe(room);
    bytes.set(before);
  };
  return {
    add: (piece: Uint8Array): void => {
      if (size + piece.length > bytes.length) grow(size + piece.length);
      if (isDropped) return;
      bytes.set(piece, size);
      size += piece.length;
    },
    complete: (): Buffer => {
      const all = bytes.subarray(0, size);
      release();
      return all;
    },
    release,
  };
}
