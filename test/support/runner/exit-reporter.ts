/** Reporter of Node's test runner that prints how a failed test process ended. The spec reporter prints only `test failed`. */
import type { TestEvent } from 'node:test/reporters';

/** @public Node's test runner calls it. */
export default async function* reportExits(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail') continue;
    const { exitCode = null, signal = null }: ProcessEnd = data.details.error;
    if (exitCode !== null || signal !== null)
      yield `\n${data.name} ended with ${signal ?? `exit code ${exitCode}`}\n`;
  }
}

/** Properties that Node adds to the error of a process. */
interface ProcessEnd extends Error {
  readonly exitCode?: number | null;
  readonly signal?: NodeJS.Signals | null;
}
