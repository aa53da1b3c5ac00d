/** Runs several test files in one process, each as a suite with the file's name. */
import { after, describe } from 'node:test';
import { readCpuSeconds, recordFileCpu } from './cpu-report.js';

const closers: (() => Promise<unknown> | unknown)[] = [];
let isGroup = false;

/** Hooks of the process: they run after its last file. A file's own `after` hooks run at the end of the file. */
export const testProcess = {
  after(close: () => Promise<unknown> | unknown): void {
    if (isGroup) closers.push(close);
    else after(close);
  },
};

/**
 * A client of a killed server may leave a socket open, and a BullMQ worker that is closed while it reconnects never
 * ends (taskforcesh/bullmq#4585). The process exits this long after the last test at the latest.
 */
const exitTimeoutMs = 10_000;

/**
 * Loads a file when the previous one has ended, because many files start servers while they load.
 * @param files names and URLs of compiled test files
 * @public The generated entries of run-tests.ts call it.
 */
export async function runTestGroup(files: ReadonlyMap<string, string>): Promise<void> {
  isGroup = true;
  for (const [name, url] of files) await runTestFile(name, url);
  for (const close of closers.reverse()) await close();
  setTimeout(() => process.exit(), exitTimeoutMs).unref();
}

/** Longer than all `after` hooks of a file take. */
const hooksTimeoutMs = 60_000;

const runTestFile = (name: string, url: string): Promise<void> =>
  new Promise((resolve) => {
    describe(name, async () => {
      const start = readCpuSeconds();
      let fallback: NodeJS.Timeout | undefined;
      // If a hook throws, later hooks do not run. This first hook lets the next file start in that case.
      after(() => {
        fallback = setTimeout(resolve, hooksTimeoutMs);
      });
      try {
        await import(url);
      } finally {
        // The last hook of the file.
        after(() => {
          clearTimeout(fallback);
          recordFileCpu(name, readCpuSeconds() - start);
          setImmediate(resolve);
        });
      }
    });
  });
