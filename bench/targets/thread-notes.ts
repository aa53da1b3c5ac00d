/**
 * Preloaded into every thread of a target (`node --import …?folder=F`): writes notes into F, to read the
 * threads' CPU time. With `&profile=1`, also takes V8 CPU profiles.
 */
import { readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMainThread, parentPort, threadId } from 'node:worker_threads';
import { profileOnRequest } from '../profile/recorder.js';
import type { ThreadNote, ThreadPart } from './threads.js';

const { searchParams } = new URL(import.meta.url);
const folder = searchParams.get('folder');
if (folder === null) throw new Error('thread-notes needs ?folder=');
const hasThreadIds = process.platform === 'linux';
/** V8's default threads, with the one for delayed tasks. The signal thread follows them. */
const v8Threads = 5;

/** The last part of "PID/task/TID". */
const readThreadId = (): number => Number(readlinkSync('/proc/thread-self').split('/').at(-1));
const createNote = (tid: number, part: ThreadPart): ThreadNote => ({ pid: process.pid, tid, part });

/** Node's threads share one name, so the order of creation identifies them (tested). */
async function listProcessThreads(): Promise<ThreadNote[]> {
  await stat('.'); // libuv starts its pool with the first task
  const tids = readdirSync('/proc/self/task').map(Number);
  const others = tids.filter((tid) => tid !== process.pid).sort((a, b) => a - b);
  return [
    createNote(readThreadId(), 'front end'),
    ...others.slice(0, v8Threads).map((tid) => createNote(tid, 'runtime')),
    ...others.slice(v8Threads + 1).map((tid) => createNote(tid, 'libuv')),
  ];
}

/** Atomic: others may read the file. */
function writeNotes(notes: readonly ThreadNote[]): void {
  const file = join(folder as string, `${process.pid}-${threadId}`);
  writeFileSync(file, JSON.stringify(notes));
  renameSync(file, `${file}.json`);
}

/** Piscina's first message names the thread's entry. The port allows no second listener. */
function watchThreadName(onName: (name: string) => void): void {
  const originalOn = parentPort?.on;
  if (!parentPort || !originalOn) return;
  parentPort.on = (event, listener) => {
    const spy = (message: { readonly name?: unknown }): void => {
      if (typeof message?.name === 'string') onName(message.name);
      listener(message);
    };
    return originalOn.call(parentPort, event, event === 'message' ? spy : listener);
  };
}

const processNote: ThreadNote = { pid: process.pid, tid: null, part: 'front end' };
if (!hasThreadIds) writeNotes(isMainThread ? [processNote] : []);
else if (isMainThread) writeNotes(await listProcessThreads());
else writeNotes([createNote(readThreadId(), 'workers')]);
let threadName = isMainThread ? 'main' : 'worker';
watchThreadName((name) => {
  threadName = name;
  if (hasThreadIds && name === 'forecast') writeNotes([createNote(readThreadId(), 'forecast')]);
});
if (searchParams.has('profile')) profileOnRequest(folder, () => threadName);
