/** Bytes of a body that arrives in several pieces, in memory that is bounded for all such bodies together. */

/** More is refused until some are through. */
const maxBytes = 96 * 1024 * 1024;
let allBytes = 0;

export interface ArrivingBody {
  /** Copies the piece; false where there is no room for it: nothing is kept any more then. */
  add(piece: Uint8Array): boolean;
  /** What has come; for the taker to keep, for here it is forgotten. */
  take(): Buffer;
  /** Gives the memory back, however often it is called. */
  forget(): void;
}

/**
 * In one piece of memory, whose whole room is counted: a piece may be a single byte, for which its sender pays six, and an
 * object for each of them would take a hundred.
 *
 * @param most bytes that are ever added
 */
export function createArrivingBody(most: number): ArrivingBody {
  let bytes = Buffer.alloc(0);
  let size = 0;
  const forget = (): void => {
    allBytes -= bytes.length;
    bytes = Buffer.alloc(0);
    size = 0;
  };
  const grow = (least: number): boolean => {
    const room = Math.min(most, Math.max(least, 2 * bytes.length));
    if (allBytes + room - bytes.length > maxBytes) return false;
    allBytes += room - bytes.length;
    const before = bytes;
    bytes = Buffer.allocUnsafe(room);
    bytes.set(before);
    return true;
  };
  return {
    add: (piece) => {
      if (size + piece.length > bytes.length && !grow(size + piece.length)) {
        forget();
        return false;
      }
      bytes.set(piece, size);
      size += piece.length;
      return true;
    },
    take: () => {
      const all = bytes.subarray(0, size);
      forget();
      return all;
    },
    forget,
  };
}
