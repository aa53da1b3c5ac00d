/** How many event ids a learner has taken, and when: what tells how far back they are remembered. */

/** Ids are remembered this long, in seconds. */
export const idWindowSeconds = 86_400;
/** Of a learner who has taken more in that time, the newest; */
const newestIds = 1000;
/** but never for less than so many seconds. */
export const minIdWindowSeconds = 600;
/** Most that are taken in that time. */
export const mostIds = 20_000;
/** Every so many ids their second is noted. */
const idsPerMark = 250;
/** Marks from the one before the newest ids on. */
const marksKept = newestIds / idsPerMark + 1;

/** All seconds are Unix time. */
export interface IdLedger {
  /** Counts an id. @returns the second that it is taken at: where a clock stepped back, not before the ids before it */
  take(second: number): number;
  /** Whether an id that was taken at a second is remembered at another. */
  remembers(takenAt: number, second: number): boolean;
  /** Whether no more may be taken now. */
  isFull(second: number): boolean;
  /** 4 bytes of count, then 4 of each mark, oldest first. */
  encoded(): Buffer;
}

/** @param stored as it was encoded; null: no id was taken yet */
export function openLedger(stored: Buffer | null): IdLedger {
  let count = stored === null ? 0 : stored.readUInt32LE(0);
  const marks: number[] = [];
  for (let at = 4; stored !== null && at < stored.length; at += 4) marks.push(stored.readUInt32LE(at));

  /** How many ids had been taken at a mark. */
  const takenAtMark = (index: number): number =>
    count - (count % idsPerMark) - idsPerMark * (marks.length - 1 - index);

  function note(second: number): void {
    marks.push(second);
    // The first one stays behind the shortest window, from where ids are counted.
    const ended = second - minIdWindowSeconds;
    while (marks.length > marksKept && (marks[1] as number) <= ended) marks.shift();
  }

  return {
    take: (second) => {
      const at = Math.max(second, marks.at(-1) ?? 0);
      count += 1;
      if (count % idsPerMark === 0) note(at);
      return at;
    },
    remembers: (takenAt, second) =>
      takenAt > second - minIdWindowSeconds ||
      (takenAt > second - idWindowSeconds && takenAt >= (marks.at(-marksKept) ?? 0)),
    isFull: (second) => {
      if (count < mostIds) return false;
      const before = marks.findLastIndex((mark) => mark <= second - minIdWindowSeconds);
      return count - (before < 0 ? takenAtMark(0) - idsPerMark : takenAtMark(before)) >= mostIds;
    },
    encoded: () => {
      const bytes = Buffer.allocUnsafe(4 + 4 * marks.length);
      bytes.writeUInt32LE(count, 0);
      marks.forEach((mark, i) => {
        bytes.writeUInt32LE(mark, 4 + 4 * i);
      });
      return bytes;
    },
  };
}
