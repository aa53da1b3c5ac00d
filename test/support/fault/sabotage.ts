/**
 * Preloaded into a service of a fault test (`node --import …?orders=FOLDER`), in every thread: ends or hangs its worker
 * threads, or ends itself, when the test leaves an order, which is a file with the process' id as its name.
 */
import { readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { BroadcastChannel, isMainThread, type Worker } from 'node:worker_threads';
import type { ThreadFault } from './thread-orders.js';

const orders = new URL(import.meta.url).searchParams.get('orders');
if (orders === null) throw new Error('sabotage needs ?orders=');
const orderFile = join(orders, `${process.pid}`);
const lookMs = 20;

const channel = new BroadcastChannel(`sabotage-${process.pid}`);
channel.unref();

if (isMainThread) obeyOrders();
else obeyMain();

function obeyOrders(): void {
  const workers = new Set<Worker>();
  process.on('worker', (worker) => {
    workers.add(worker);
    worker.once('exit', () => workers.delete(worker));
  });
  setInterval(() => {
    const order = takeOrder();
    if (order === null) return;
    if (order === 'terminate') for (const worker of workers) void worker.terminate();
    else channel.postMessage(order);
  }, lookMs).unref();
}

function takeOrder(): ThreadFault | null {
  try {
    const order = readFileSync(orderFile, 'utf8');
    rmSync(orderFile);
    return order as ThreadFault;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** A commit is the moment at which it hurts most: the order waits for the next one. */
function obeyMain(): void {
  let order: ThreadFault | null = null;
  channel.onmessage = (message) => {
    order = (message as { data: ThreadFault }).data;
  };
  const write = Socket.prototype.write;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]) {
    const due = order !== null && isCommit(args[0]);
    if (due && order === 'exit before the commit') process.exit(1);
    const written = Reflect.apply(write, this, args);
    if (due && order === 'exit after the commit') process.exit(1);
    if (due && order === 'kill after the commit') process.kill(process.pid, 'SIGKILL');
    while (due);
    return written;
  };
}

/** Of answers, or of taking one back. */
const marks = ['XADD', '"kind":"rewrite"'];

const isCommit = (bytes: unknown): boolean =>
  (typeof bytes === 'string' || bytes instanceof Uint8Array) &&
  marks.some((mark) => Buffer.from(bytes as string).includes(mark));
