/** The service without batches: one Piscina task per request. */

import { App, type HttpResponse } from 'uWebSockets.js';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { learningEventCheck } from '../../src/contracts/answers/events.js';
import type { PeerSettings } from '../targets/peers.js';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
const threads = Math.max(1, availableParallelism() - 1);
const tasksPerThread = 64;
const validKeys = new Set(settings.keys);
const pool = new Piscina({
  filename: fileURLToPath(new URL('./task.js', import.meta.url)),
  minThreads: threads,
  maxThreads: threads,
  concurrentTasksPerWorker: tasksPerThread,
  // Otherwise an idle thread sleeps in Atomics.wait and does not read from Redis.
  atomics: 'disabled',
  workerData: settings,
});

async function respond(res: HttpResponse, isAborted: () => boolean, body: string): Promise<void> {
  const event: unknown = JSON.parse(body);
  const [status, text] = learningEventCheck.Check(event)
    ? ['200 OK', await pool.run(event)]
    : ['400 Bad Request', '{"success":false}'];
  if (isAborted()) return;
  res.cork(() => {
    res.writeStatus(status).writeHeader('Content-Type', 'application/json').end(text);
  });
}

const app = App();
app.post('/api/v1/track-answer', (res, req) => {
  const isKnown = validKeys.has(req.getHeader('x-api-key'));
  const chunks: Buffer[] = [];
  let gone = false;
  res.onAborted(() => {
    gone = true;
  });
  res.onData((chunk, isLast) => {
    chunks.push(Buffer.from(new Uint8Array(chunk)));
    if (!isLast) return;
    if (isKnown) void respond(res, () => gone, Buffer.concat(chunks).toString());
    else res.cork(() => res.writeStatus('401 Unauthorized').end());
  });
});
app.listen('127.0.0.1', settings.port, (socket) => {
  if (!socket) throw new Error(`Port ${settings.port} is in use`);
  process.stdout.write('ready\n');
});
