/**
 * Preloaded into a service of a fault test, in every thread (`node --import …?orders=FOLDER`). An order is a file named after
 * the process id; it ends or blocks the worker threads at their next commit.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { BroadcastChannel, isMainThread, type Worker } from 'node:worker_threads';
import type { ThreadFault } from './deployment.js';

const orders = new URL(import.meta.url).searchParams.get('orders');
if (orders === null) throw new Error('sabotage needs ?orders=');
const orderFile = join(orders, `${process.pid}`);
const pollMs = 20;
const channel = new BroadcastChannel(`sabotage-${process.pid}`);
channel.unref();

if (isMainThread) passOrders();
else obeyOrders();

function passOrders(): void {
  const workers = new Set<Worker>();
  process.on('worker', (worker) => {
    workers.add(worker);
    worker.once('exit', () => workers.delete(worker));
  });
  setInterval(() => {
    const order = takeOrder();
    if (order === 'terminate') for (const worker of workers) void worker.terminate();
    else if (order !== null) channel.postMessage(order);
  }, pollMs).unref();
}

function takeOrder(): string | null {
  if (!existsSync(orderFile)) return null;
  const order = readFileSync(orderFile, 'utf8');
  rmSync(orderFile);
  return order;
}

function obeyOrders(): void {
  let order: ThreadFault | null = null;
  channel.onmessage = (message) => {
    order = (message as { data: ThreadFault }).data;
  };
  const write = Socket.prototype.write;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]) {
    const isDue = order !== null && isCommit(args[0]);
    if (isDue && order === 'exit before the commit') process.exit(1);
    const written = Reflect.apply(write, this, args);
    if (isDue && order === 'exit after the commit') process.exit(1);
    if (isDue && order === 'kill after the commit') process.kill(process.pid, 'SIGKILL');
    while (isDue);
    return written;
  };
}

/** Texts in the commits of answers and of retractions. */
const marks = ['XADD', '"kind":"rewrite"'];

const isCommit = (bytes: unknown): boolean =>
  (typeof bytes === 'string' || bytes instanceof Uint8Array) &&
  marks.some((mark) => Buffer.from(bytes as string).includes(mark));
