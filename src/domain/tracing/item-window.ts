/**
 * Which items of a learner are remembered: two generations of at most `generationSize` items each. An answer writes its
 * item into the current generation; when that is full, a new one begins and the one before it is forgotten as a whole. So
 * at least the last `generationSize` different items are remembered, and the same answers in the same order leave the
 * same items.
 */

/** Redis keeps hashes of up to 128 small fields in its compact form. */
const generationSize = 128;

export const newItemWindow = {
  /** Number of the current generation, from 0. */
  generation: 0,
  /** Items in it. */
  size: 0,
};

export type ItemWindow = Readonly<typeof newItemWindow>;

/** An item's figures, and the generation that they were written in. */
export interface RememberedItem<Trace> {
  readonly generation: number;
  readonly trace: Trace;
}

/** The item's figures, null where it was never answered or is forgotten. */
export function recallItem<Trace>(window: ItemWindow, item: RememberedItem<Trace> | undefined): Trace | null {
  return item === undefined || item.generation < window.generation - 1 ? null : item.trace;
}

/** The window after an answer on the item, which then belongs to its current generation. */
export function openWindow(window: ItemWindow, item: RememberedItem<unknown> | undefined): ItemWindow {
  if (item?.generation === window.generation) return window;
  if (window.size < generationSize) return { generation: window.generation, size: window.size + 1 };
  return { generation: window.generation + 1, size: 1 };
}
