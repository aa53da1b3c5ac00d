/** Runs test files in this process, each as a suite with the file's name. */
import { after, describe } from 'node:test';
import { createHooks } from '../scope.js';
import { readCpuSeconds, recordFileCpu } from './cpu-report.js';
import { takeNext } from './test-queue.js';

/** Hooks of the process: they run after its last file. */
export const testProcess = createHooks();

/** Hooks of the current file: they run after its own `after` hooks. */
export const testFile = createHooks();

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
  /** Time limit of a file, and of each test without a limit. */
  readonly limitMs: number;
}

/**
 * Takes files from the queue until it is empty. Loads a file when the previous one has ended, because many files start
 * servers while they load.
 * @public The entries that run-tests.ts writes call it.
 */
export async function runTestGroup({ queue, fromEnd, limitMs }: TestGroup): Promise<void> {
  for (let file = takeNext(queue, fromEnd); file !== null; file = takeNext(queue, fromEnd))
    await runTestFile(file, limitMs);
  await testProcess.run();
  setTimeout(() => process.exit(), exitTimeoutMs).unref();
}

/** Longer than all `after` hooks of a file take. */
const hooksTimeoutMs = 60_000;

const runTestFile = (file: string, timeout: number): Promise<void> =>
  new Promise((resolve) => {
    const name = file.replace(/\.test\.js$/, '');
    describe(name, { timeout }, async () => {
      const start = readCpuSeconds();
      let fallback: NodeJS.Timeout | undefined;
      // If a hook throws, later hooks do not run. This first hook lets the next file start in that case.
      after(() => {
        fallback = setTimeout(resolve, hooksTimeoutMs);
      });
      try {
        await import(new URL(`../../${file}`, import.meta.url).href);
      } finally {
        // The last hook of the file.
        after(async () => {
          await testFile.run();
          clearTimeout(fallback);
          recordFileCpu(name, readCpuSeconds() - start);
          setImmediate(resolve);
        });
      }
    });
  });
