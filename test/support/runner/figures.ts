/**
 * Preloaded into every process of `npm test -- --figures`: notes what a test file starts and what it takes, a line each in
 * the file that TEST_FIGURES names. At once, because many of these processes are killed.
 */
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { sep } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { readChildrenSeconds } from '../../../bench/targets/processes.js';

const names = { notes: 'TEST_FIGURES', file: 'TEST_FIGURES_FILE' };

/** What is counted, each with what its command line holds. */
const programs = {
  redis: /redis-server(?! --version)/,
  clickhouse: /bundle\/clickhouse\.js/,
  service: /bundle\/main\.js|setup\.mjs start/,
  command: /bundle\/cli-|setup\.mjs/,
} as const;

export type Start = keyof typeof programs | 'service-inside';

export type Note =
  | { readonly file: string; readonly start: Start }
  | { readonly file: string; readonly cpuSeconds: number };

/** Variables that a test gives on to a process that it starts with few others. */
export const figuresEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    ['NODE_OPTIONS', ...Object.values(names)].flatMap((name) =>
      process.env[name] === undefined || process.env[names.notes] === undefined
        ? []
        : [[name, process.env[name]]],
    ),
  );

/** The same for all processes of a run. @param notes file for the lines */
export const figuresOf = (notes: string): Record<string, string> => ({
  [names.notes]: notes,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${import.meta.url}`,
});

/** Notes a start; nothing where no figures are wanted. */
export const noteStart = (start: Start): void => write({ file: testFile(), start });

const testFile = (): string => process.env[names.file] ?? '';

function write(note: Note): void {
  const notes = process.env[names.notes];
  if (notes !== undefined) appendFileSync(notes, `${JSON.stringify(note)}\n`);
}

/** Of this process and all that it started and that have ended. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + readChildrenSeconds();
}

function watchStarts({ process: child }: { process: ChildProcess }): void {
  child.once('spawn', () => {
    const line = child.spawnargs.join(' ');
    const found = Object.entries(programs).find(([, pattern]) => pattern.test(line));
    if (found !== undefined) noteStart(found[0] as Start);
  });
}

if (isMainThread && process.env[names.notes] !== undefined) {
  const [, , own = ''] = (process.argv[1] ?? '').split(/(.*\/dist\/test\/)/);
  if (/\.(test|group)\.js$/.test(own)) {
    process.env[names.file] = own.split(sep).join('/');
    process.on('exit', () => write({ file: testFile(), cpuSeconds: cpuSeconds() }));
  }
  if (testFile() !== '')
    subscribe('child_process', (message) => watchStarts(message as { process: ChildProcess }));
}
