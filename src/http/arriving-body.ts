/** Of all bodies together that arrive in several pieces. */
const maxBytes = 96 * 1024 * 1024;
let allBytes = 0;

/** Beyond it, a body is given up where others need its room: who sends a byte now and then keeps nobody out. */
const maxWaitMs = 10_000;

/** In the order in which they began. */
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
 * A body that arrives in pieces, in one piece of memory whose whole room is counted: a piece may be a single byte, and an
 * object for each of them would take a hundred.
 *
 * @param most bytes that are ever added
 * @param onGivenUp called where there is no room, or others need it: nothing is kept from then on
 */
export function createArrivingBody(most: number, onGivenUp: () => void) {
  let bytes = Buffer.alloc(0);
  let size = 0;
  let isGivenUp = false;
  /** Gives the memory back, however often it is called. */
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
    /** Copies the piece, where there is room for it. */
    add: (piece: Uint8Array): void => {
      if (size + piece.length > bytes.length) grow(size + piece.length);
      if (isGivenUp) return;
      bytes.set(piece, size);
      size += piece.length;
    },
    /** What has come; it is forgotten here. */
    take: (): Buffer => {
      const all = bytes.subarray(0, size);
      forget();
      return all;
    },
    forget,
  };
}
