/** V8's sampler does not see V8's threads, so perf splits their time. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { ThreadNote } from '../threads.js';

export interface RuntimeSplit {
  readonly compiling: number;
  readonly collecting: number;
}

const compiles = /compil|turbofan|turboshaft|maglev|baseline/i;
const collects = /scaveng|mark|sweep|evacuat|collect|heap|unmap|allocator/i;

/**
 * @param file for the samples
 * @returns null without perf
 */
export function watchRuntime(notes: readonly ThreadNote[], file: string) {
  const threads = notes.flatMap(({ tid, part }) => (tid !== null && part === 'runtime' ? [tid] : []));
  if (threads.length === 0 || spawnSync('perf', ['--version']).status !== 0) return null;
  const args = ['record', '-q', '-g', '-F', '499', '-t', threads.join(), '-o', file];
  const child = spawn('perf', args, { stdio: 'ignore' });
  return { end: () => ended(child, file) };
}

async function ended(child: ChildProcess, file: string): Promise<RuntimeSplit | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGINT');
    await once(child, 'exit');
  }
  const script = ['script', '-i', file, '-F', 'ip,sym'];
  const { stdout } = spawnSync('perf', script, { encoding: 'utf8', maxBuffer: 2 ** 30 });
  return splitOf(stdout);
}

/** @param perfOutput stacks separated by blank lines, innermost function first */
export function splitOf(told: string): RuntimeSplit | null {
  const stacks = told.split(/\n\s*\n/).filter((stack) => stack.trim() !== '');
  if (stacks.length === 0) return null;
  const share = (kind: 'compiling' | 'collecting'): number =>
    stacks.filter((stack) => kindOf(stack) === kind).length / stacks.length;
  return { compiling: share('compiling'), collecting: share('collecting') };
}

/** The outermost matching function decides, because compilers also allocate and lock. */
function kindOf(stack: string): string {
  const frames = stack.split('\n').reverse();
  const telling = frames.find((frame) => compiles.test(frame) || collects.test(frame)) ?? '';
  return compiles.test(telling) ? 'compiling' : collects.test(telling) ? 'collecting' : 'other';
}
