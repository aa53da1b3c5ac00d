/**
 * Long work in slices, for it shares the event loop with everybody's answers. One slice has its turn in each turn of the
 * loop, whoever asks: those of many long requests must not add up to one.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

let line: Promise<unknown> = Promise.resolve();

/** Resolves when it is the caller's turn for a slice of about a millisecond, in the order of the calls. */
export function sliceTurn(): Promise<unknown> {
  line = line.then(() => nextTurn());
  return line;
}

/** Items of one slice. */
const sliceSize = 200;

/** As `items.map(each)`, at once where they are few. @param size items that take about a millisecond */
export async function mapInSlices<In, Out>(
  items: readonly In[],
  each: (item: In) => Out,
  size = sliceSize,
): Promise<Out[]> {
  if (items.length <= size) return items.map(each);
  const done: Out[] = [];
  for (let at = 0; at < items.length; at += size) {
    await sliceTurn();
    for (const item of items.slice(at, at + size)) done.push(each(item));
  }
  return done;
}
