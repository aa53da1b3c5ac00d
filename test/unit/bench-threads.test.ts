/** CPU time by what threads do: whether Node's own threads are what the notes call them, and whether nothing is missing. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNotesOption, readNotes, sumCpuByPart } from '../../bench/targets/threads.js';
import { tempDir } from '../support/temp.js';

/** Works in the main thread, in two workers, in libuv's pool, in a child; the collector has much to do. */
const program = `
import { execFileSync } from 'node:child_process';
import { pbkdf2, pbkdf2Sync } from 'node:crypto';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
const collect = (kept) => {
  for (let i = 0; i < 60; i++)
    kept = [...kept.slice(-2e4), ...Array.from({ length: 1e4 }, (_, i) => ({ i, s: 'x' + i }))];
};
const work = (name) => new Promise((resolve) => {
  const worker = new Worker(new URL(import.meta.url));
  worker.once('message', resolve).postMessage({ name });
});
if (isMainThread) {
  execFileSync(process.execPath, ['-e', '0']);
  await Promise.all([work('track'), work('forecast')]);
  collect([]);
  await new Promise((resolve) => pbkdf2('a', 'b', 300000, 64, 'sha512', resolve));
  process.stdout.write('done');
  setInterval(() => 0, 1000);
} else parentPort.on('message', () => { pbkdf2Sync('a', 'b', 300000, 64, 'sha512'); parentPort.postMessage('done'); });
`;

test('parts are told apart, and add up to the CPU time of the process with its children', {
  skip: process.platform !== 'linux' && 'Threads are told by Linux alone',
}, async (t) => {
  const folder = await tempDir(t);
  const file = join(folder, 'program.mjs');
  writeFileSync(file, program);
  const child = spawn(process.execPath, [buildNotesOption(join(folder, 'notes')), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const { rest = 0, ...parts } = sumCpuByPart(readNotes(join(folder, 'notes')));
  const { 'front end': main = 0, workers = 0, forecast = 0, runtime = 0, libuv = 0 } = parts;
  const told = JSON.stringify({ rest, ...parts });
  assert.ok(Math.min(main, workers, forecast, libuv) >= 0.04 && runtime >= 0.01 && rest >= 0.01, told);
  // The child and threads without a note; far less than what the parts hold.
  assert.ok(rest < 0.3, told);
});
