/** Runs test files in this process, each as a suite with the file's name. */
import { after, describe } from 'node:test';
import { createHooks, type Scoped } from '../scope.js';
import { nameOfFile, readCpuSeconds, recordFileCpu } from './cpu-report.js';
import { takeNext } from './test-queue.js';

let isGroup = false;
const processHooks = createHooks();
let fileHooks = createHooks();

/** Hooks of the process: they run after its last file. full/cluster runs each file alone, without runTestGroup. */
export const testProcess: Scoped = {
  after: (hook) => (isGroup ? processHooks.after(hook) : after(hook)),
};

/** Hooks of the current file: they run after the `after` hooks of the file. */
export const testFile: Scoped = { after: (hook) => fileHooks.after(hook) };

/**
 * A client of a killed server may leave a socket open, and a BullMQ worker that is closed while it reconnects never
 * ends (taskforcesh/bullmq#4585). The process exits this long after the last test at the latest.
 */
const exitTimeoutMs = 10_000;

export interface TestGroup {
  /** Folder of the waiting test files, see test-queue.ts. */
  readonly queue: string;
  /** Whether this process takes the files from the end of the queue. */
  readonly fromEnd: boolean;
  /** Whether this process takes only one file. */
  readonly isolated: boolean;
  /** Time limit of a file, and of each test without a limit. */
  readonly limitMs: number;
}

/**
 * Takes files from the queue until it is empty. Loads a file when the previous one has ended, because many files start
 * servers while they load.
 * @public The entries that run-tests.ts writes call it.
 */
export async function runTestGroup({ queue, fromEnd, isolated, limitMs }: TestGroup): Promise<void> {
  isGroup = true;
  for (;;) {
    const file = takeNext(queue, fromEnd);
    if (file === null) break;
    await runTestFile(file, limitMs);
    if (isolated) break;
  }
  const cancel = exitAfter(hooksTimeoutMs, 'the hooks of the process did not end');
  try {
    await processHooks.run();
  } finally {
    cancel();
    setTimeout(() => process.exit(), exitTimeoutMs).unref();
  }
}

/** Longer than all `after` hooks of a file take. */
const hooksTimeoutMs = 60_000;

function exitAfter(limitMs: number, reason: string): () => void {
  const timer = setTimeout(() => {
    process.stderr.write(`${reason}\n`);
    process.exit(1);
  }, limitMs).unref();
  return () => clearTimeout(timer);
}

const runTestFile = (file: string, timeout: number): Promise<void> =>
  new Promise((resolve) => {
    const name = nameOfFile(file);
    // The time limit of a suite starts when it is loaded, and a suite that fails while it loads runs no hooks.
    const cancel = exitAfter(timeout + 2 * hooksTimeoutMs, `${name} did not end`);
    const end = (): void => {
      cancel();
      resolve();
    };
    describe(name, { timeout }, async () => {
      const start = readCpuSeconds();
      const hooks = createHooks();
      fileHooks = hooks;
      let fallback: NodeJS.Timeout | undefined;
      // If a hook throws, later hooks do not run. This first hook lets the next file start in that case.
      after(() => {
        fallback = setTimeout(end, hooksTimeoutMs);
      });
      try {
        await import(new URL(`../../${file}`, import.meta.url).href);
      } finally {
        // The last hook of the file.
        after(async () => {
          await hooks.run();
          clearTimeout(fallback);
          recordFileCpu(name, readCpuSeconds() - start);
          setImmediate(end);
        });
      }
    });
  });
