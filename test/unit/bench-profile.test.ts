/** Where the CPU time of `npm run bench` goes: by function and by thread. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { join } from 'node:path';
import { test } from 'node:test';
import { sumFunctionTimes } from '../../bench/profile/cpu-profile.js';
import { buildNotesOption, readNotes, sumCpuByPart } from '../../bench/targets/threads.js';
import { tempDir } from '../support/temp.js';

const node = (id: number, functionName: string, children: number[] = [], url = ''): Profiler.ProfileNode => ({
  id,
  callFrame: { functionName, scriptId: '0', url, lineNumber: 1, columnNumber: 0 },
  children,
});

/** `again` calls itself; 2 ms of 10 are idle. */
const profile: Profiler.Profile = {
  nodes: [
    node(1, '(root)', [2, 3, 5]),
    node(2, '(idle)'),
    node(3, 'again', [4], 'node:x'),
    node(4, 'again', [], 'node:x'),
    node(5, '<leaf>'),
  ],
  startTime: 0,
  endTime: 10_000,
  samples: [2, 3, 4, 5],
  timeDeltas: [2000, 1000, 3000, 4000],
};

test('sumFunctionTimes counts recursion once and no idle time', () => {
  assert.deepEqual(sumFunctionTimes(profile), [
    { label: 'again node:x:2', self: 4000, total: 4000 },
    { label: '<leaf>', self: 4000, total: 4000 },
  ]);
});

/** Works in the main thread, two workers, libuv's pool, a child process, and the garbage collector. */
const program = `
import { execFileSync } from 'node:child_process';
import { pbkdf2, pbkdf2Sync } from 'node:crypto';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
const collect = (objects) => {
  for (let i = 0; i < 60; i++)
    objects = [...objects.slice(-2e4), ...Array.from({ length: 1e4 }, (_, i) => ({ i, s: 'x' + i }))];
};
const work = (name) => new Promise((resolve) => {
  const worker = new Worker(new URL(import.meta.url));
  worker.once('message', resolve).postMessage({ name });
});
if (isMainThread) {
  execFileSync(process.execPath, ['-e', "require('crypto').pbkdf2Sync('a', 'b', 300000, 64, 'sha512')"]);
  await Promise.all([work('track'), work('forecast')]);
  collect([]);
  await new Promise((resolve) => pbkdf2('a', 'b', 300000, 64, 'sha512', resolve));
  process.stdout.write('done');
  setInterval(() => 0, 1000);
} else parentPort.on('message', () => { pbkdf2Sync('a', 'b', 300000, 64, 'sha512'); parentPort.postMessage('done'); });
`;

test('sumCpuByPart divides the CPU time of a process and its children by thread', {
  skip: process.platform !== 'linux' && 'Only Linux has CPU times of threads',
}, async (t) => {
  const folder = await tempDir(t);
  const file = join(folder, 'program.mjs');
  const notes = join(folder, 'notes');
  writeFileSync(file, program);
  const child = spawn(process.execPath, [buildNotesOption(notes), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const parts = sumCpuByPart(readNotes(notes));
  const { 'front end': main = 0, workers = 0, forecast = 0, runtime = 0, libuv = 0, rest = 0 } = parts;
  const text = JSON.stringify(parts);
  assert.ok(Math.min(main, workers, forecast, libuv, rest) >= 0.04 && runtime >= 0.01, text);
  // `rest` is the child process and threads without a note. Each part hashes once, so two hashes in `rest` are one too many.
  assert.ok(rest < 2 * Math.min(libuv, workers, forecast), text);
});
