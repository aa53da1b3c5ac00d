/** A tenant who posts single answers in an open loop, whatever comes back: in a thread, so that nobody here delays it. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Connection, openConnection } from '../../../bench/load/connection.js';
import { rawRequest } from '../http/http.js';

/** What the thread is told, and what it tells when it is asked. */
export interface NeighbourPlan {
  readonly port: number;
  readonly key: string;
  /** Answers a second. */
  readonly rate: number;
}

/** Since the last look. Latencies count from the moment at which an answer was due. */
export interface NeighbourFigures {
  readonly posted: number;
  readonly refused: number;
  /** Not answered yet; their age so far counts among the latencies. */
  readonly waiting: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

interface Lane {
  connection: Connection | null;
  dueAt: number | null;
}

const plan = workerData as NeighbourPlan;
const connections = 64;
const tickMs = 1;

const lanes: Lane[] = Array.from({ length: connections }, () => ({ connection: null, dueAt: null }));
const due: number[] = [];
let latencies: number[] = [];
let refused = 0;
let sent = 0;
let turn = 0;
let next = performance.now();

function take(lane: Lane, status: number): void {
  latencies.push(performance.now() - (lane.dueAt ?? 0));
  lane.dueAt = null;
  if (status !== 200) refused += 1;
}

/** What was under way on a connection that went is as one that was refused. */
async function open(lane: Lane): Promise<void> {
  const onLost = (): void => {
    if (lane.dueAt !== null) take(lane, 0);
    lane.connection = null;
    setTimeout(() => void open(lane), 100);
  };
  const onResponse = (status: number): void => take(lane, status);
  lane.connection = await openConnection(plan.port, { onResponse, onLost }).catch(() => null);
  if (lane.connection === null) setTimeout(() => void open(lane), 100);
}

const body = (number: number): string =>
  JSON.stringify({ user_id: `n${number % 500}`, skill_id: `s${number % 20}`, is_correct: number % 3 > 0 });

function sendDue(): void {
  for (const now = performance.now(); next <= now; next += 1000 / plan.rate) due.push(next);
  for (let tried = 0; tried < connections && due.length > 0; tried++) {
    // In turn: the service closes a connection that is idle for long.
    const lane = lanes[turn++ % connections] as Lane;
    if (lane.connection === null || lane.dueAt !== null) continue;
    lane.dueAt = due.shift() as number;
    lane.connection.send(rawRequest(plan.key, { body: body(sent++) }));
  }
}

/** Those who wait for long tell of a service that stands still. */
function figures(): NeighbourFigures {
  const now = performance.now();
  const waiting = [...due, ...lanes.flatMap(({ dueAt }) => dueAt ?? [])].map((since) => now - since);
  const all = [...latencies, ...waiting.filter((age) => age > 100)].sort((a, b) => a - b);
  const at = (share: number): number => all[Math.min(all.length - 1, Math.floor(share * all.length))] ?? 0;
  const told = { posted: latencies.length, refused, waiting: waiting.length };
  latencies = [];
  refused = 0;
  return { ...told, p50: at(0.5), p99: at(0.99), max: at(1) };
}

await Promise.all(lanes.map(open));
next = performance.now();
setInterval(sendDue, tickMs);
parentPort?.on('message', () => parentPort?.postMessage(figures()));
parentPort?.postMessage('ready');
