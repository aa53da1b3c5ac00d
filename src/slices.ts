/**
 * Long work in slices, for it shares the event loop with everybody's answers. One slice has its turn in each turn of the
 * loop, whoever asks: those of many long requests must not add up to one.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 1;

let line: Promise<unknown> = Promise.resolve();

/** Resolves when it is the caller's turn for a slice, in the order of the calls. */
export function sliceTurn(): Promise<unknown> {
  line = line.then(() => nextTurn());
  return line;
}

/** Runs steps to their end. What takes no longer than a slice waits for nobody. @throws what a step throws */
export async function inSlices<Result>(steps: Iterator<unknown, Result>): Promise<Result> {
  for (;;) {
    const end = performance.now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await sliceTurn();
  }
}

/** As `items.map(each)`. */
export const mapInSlices = <In, Out>(items: Iterable<In>, each: (item: In) => Out): Promise<Out[]> =>
  inSlices(mapSteps(items, each));

function* mapSteps<In, Out>(items: Iterable<In>, each: (item: In) => Out): Generator<undefined, Out[]> {
  const done: Out[] = [];
  for (const item of items) {
    done.push(each(item));
    yield;
  }
  return done;
}
