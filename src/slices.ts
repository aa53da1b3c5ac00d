/** Runs long work in slices between requests: one slice, of one caller, in each turn of the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 1;

let line: Promise<unknown> = Promise.resolve();

/** Resolves when it is the caller's turn for a slice, in the order of the calls. */
export function sliceTurn(): Promise<unknown> {
  line = line.then(() => nextTurn());
  return line;
}

/** Runs all steps. Work shorter than a slice does not wait. @throws errors of a step */
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
export async function mapInSlices<In, Out>(items: Iterable<In>, each: (item: In) => Out): Promise<Out[]> {
  const done: Out[] = [];
  await inSlices(
    (function* () {
      for (const item of items) yield done.push(each(item));
    })(),
  );
  return done;
}
