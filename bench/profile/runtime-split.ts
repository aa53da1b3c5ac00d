/** V8's sampler does not see V8's threads, so perf splits their time. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { ThreadNote } from '../targets/threads.js';

export interface RuntimeSplit {
  readonly compiling: number;
  readonly collecting: number;
}

const compilerPattern = /compil|turbofan|turboshaft|maglev|baseline/i;
const collectorPattern = /scaveng|mark|sweep|evacuat|collect|heap|unmap|allocator/i;

/**
 * @param file for the samples
 * @returns null without perf
 */
export function watchRuntime(notes: readonly ThreadNote[], file: string) {
  const threads = notes.flatMap(({ tid, part }) => (tid !== null && part === 'runtime' ? [tid] : []));
  if (threads.length === 0 || spawnSync('perf', ['--version']).status !== 0) return null;
  const args = ['record', '-q', '-g', '-F', '499', '-t', threads.join(), '-o', file];
  const child = spawn('perf', args, { stdio: 'ignore' });
  return { end: () => stopRecording(child, file) };
}

async function stopRecording(child: ChildProcess, file: string): Promise<RuntimeSplit | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGINT');
    await once(child, 'exit');
  }
  const script = ['script', '-i', file, '-F', 'ip,sym'];
  const { stdout } = spawnSync('perf', script, { encoding: 'utf8', maxBuffer: 2 ** 30 });
  return parseSplit(stdout);
}

/** @param perfOutput stacks separated by blank lines, innermost function first */
function parseSplit(perfOutput: string): RuntimeSplit | null {
  const stacks = perfOutput.split(/\n\s*\n/).filter((stack) => stack.trim() !== '');
  if (stacks.length === 0) return null;
  const share = (kind: 'compiling' | 'collecting'): number =>
    stacks.filter((stack) => classifyStack(stack) === kind).length / stacks.length;
  return { compiling: share('compiling'), collecting: share('collecting') };
}

/** The outermost matching function decides, because compilers also allocate and lock. */
function classifyStack(stack: string): string {
  const frames = stack.split('\n').reverse();
  const decisiveFrame =
    frames.find((frame) => compilerPattern.test(frame) || collectorPattern.test(frame)) ?? '';
  return compilerPattern.test(decisiveFrame)
    ? 'compiling'
    : collectorPattern.test(decisiveFrame)
      ? 'collecting'
      : 'other';
}
