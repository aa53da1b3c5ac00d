/** Runs long work in slices: each turn of the event loop runs one slice of one caller. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 1;

let lastTurn: Promise<unknown> = Promise.resolve();

/** Resolves in the order of the calls. */
export function waitForSlice(): Promise<unknown> {
  lastTurn = lastTurn.then(() => nextTurn());
  return lastTurn;
}

/** Work shorter than a slice does not wait. @throws errors of a step */
export async function runInSlices<Result>(steps: Iterator<unknown, Result>): Promise<Result> {
  for (;;) {
    const end = performance.now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await waitForSlice();
  }
}

export async function mapInSlices<In, Out>(items: Iterable<In>, each: (item: In) => Out): Promise<Out[]> {
  const results: Out[] = [];
  await runInSlices(
    (function* () {
      for (const item of items) yield results.push(each(item));
    })(),
  );
  return results;
}
