/** Runs several test files in one process, each as a suite with the file's name. */
import { after, describe } from 'node:test';
import { readCpuSeconds, recordFileCpu } from './cpu-report.js';

const closers: (() => Promise<unknown>)[] = [];

/** Hooks of the process: run after its last file. A test file's own `after` hooks run at the end of the file. */
export const testProcess = {
  after(close: () => Promise<unknown>): void {
    closers.push(close);
  },
};

/**
 * Loads a file when the previous one has ended, because many files start servers while they load.
 * @param files names and URLs of compiled test files
 */
export async function runTestGroup(files: ReadonlyMap<string, string>): Promise<void> {
  after(async () => {
    for (const close of closers.reverse()) await close();
  });
  for (const [name, url] of files) await runTestFile(name, url);
}

const runTestFile = (name: string, url: string): Promise<void> =>
  new Promise((resolve) => {
    describe(name, async () => {
      const start = readCpuSeconds();
      try {
        await import(url);
      } finally {
        after(() => {
          recordFileCpu(name, readCpuSeconds() - start);
          // The suite ends after this hook.
          setImmediate(resolve);
        });
      }
    });
  });
