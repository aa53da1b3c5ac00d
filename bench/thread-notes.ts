/**
 * Preloaded into the processes of a measured service (`node --import …?folder=F`), in every thread: leaves a note
 * about the thread in F, so that its CPU time can be read from outside.
 */
import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, threadId } from 'node:worker_threads';
import type { ThreadNote } from './threads.js';

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder === null) throw new Error('thread-notes needs ?folder=');

/** The number of this thread for the system: the last part of "PID/task/TID"; null where there is no /proc. */
const tid = process.platform === 'linux' ? Number(readlinkSync('/proc/thread-self').split('/').at(-1)) : null;
const note: ThreadNote = { pid: process.pid, tid, isMain: isMainThread };
writeFileSync(join(folder, `${process.pid}-${threadId}.json`), JSON.stringify(note));
