import { createHistogram, performance } from 'node:perf_hooks';
import { type Connection, openConnection } from './connection.js';
import type { LoadProgress, OperationCounts, ThreadPlan, ThreadResult } from './plan.js';
import type { HttpResponse } from './response-reader.js';
import { createBurstLoop, createClosedLoop, createOpenLoop, type Schedule } from './schedule.js';
import { createRequestSource, type LoadRequest, type Operation } from './traffic.js';

/** Maximum delay of a due request; it counts as latency. */
const tickMs = 1;
/** Opening thousands one by one takes so long that the server closes the first as idle. */
const parallelOpens = 100;
const requestTimeoutMs = 30_000;
const reconnectMs = 200;
const maxShownBytes = 500;
/** A load with more failed requests ends early. */
const maxUnsettled = 20_000;

/** @throws Error if no connection can be opened, or with `failsFast` if a request fails */
export async function driveLoad(
  plan: ThreadPlan,
  onProgress: (progress: LoadProgress) => void = () => undefined,
): Promise<ThreadResult> {
  const load = new Load(plan, onProgress);
  try {
    return await load.run();
  } finally {
    load.close();
  }
}

function createSchedule({ rate, seconds, isBurst = false, thread, threads }: ThreadPlan): Schedule {
  if (rate === null) return createClosedLoop(seconds);
  if (!isBurst) return createOpenLoop(rate / threads, seconds, thread / threads);
  return createBurstLoop(Math.floor((rate + threads - 1 - thread) / threads), seconds);
}

interface Channel {
  connection: Connection | null;
  request: LoadRequest | null;
  /** Milliseconds since the start. */
  dueAt: number;
  sentAt: number;
}

class Load {
  private readonly schedule: Schedule;
  private readonly nextRequest: () => LoadRequest;
  private readonly operations = new Map<Operation, OperationCounts>();
  private readonly acknowledged: Uint32Array;
  private readonly unsettled: LoadRequest[] = [];
  private readonly idle: Channel[] = [];
  private readonly channels: Channel[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly done: Promise<void>;
  private finish: () => void = () => undefined;
  private fail: (error: Error) => void = () => undefined;
  private closed = false;
  private start = 0;
  private sent = 0;
  private succeeded = 0;
  private failed = 0;
  private answers = 0;
  private lastResponse = 0;
  private numbers = 0;

  constructor(
    private readonly plan: ThreadPlan,
    private readonly onProgress: (progress: LoadProgress) => void,
  ) {
    const { traffic, seed, thread, threads, firstAnswer } = plan;
    this.schedule = createSchedule(plan);
    this.acknowledged = new Uint32Array(traffic.learners);
    const nextNumber = (): number => firstAnswer + thread + threads * this.numbers++;
    this.nextRequest = createRequestSource(traffic, seed + thread, nextNumber);
    this.done = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
  }

  async run(): Promise<ThreadResult> {
    while (this.channels.length < this.plan.connections) {
      const length = Math.min(parallelOpens, this.plan.connections - this.channels.length);
      this.channels.push(...(await Promise.all(Array.from({ length }, () => this.openChannel()))));
    }
    this.idle.push(...this.channels);
    this.start = performance.now();
    const before = performance.eventLoopUtilization();
    this.timers.push(setInterval(() => this.sendDue(), tickMs));
    this.timers.push(setInterval(() => this.checkTime(), 100));
    this.sendDue();
    await this.done;
    const { utilization } = performance.eventLoopUtilization(before);
    return this.result(utilization);
  }

  close(): void {
    this.closed = true;
    this.timers.forEach(clearTimeout);
    for (const { connection } of this.channels) connection?.close();
  }

  private async openChannel(): Promise<Channel> {
    const channel: Channel = { connection: null, request: null, dueAt: 0, sentAt: 0 };
    channel.connection = await this.connect(channel);
    return channel;
  }

  private connect(channel: Channel): Promise<Connection> {
    return openConnection(this.plan.endpoint, {
      onResponse: (response) => this.handleResponse(channel, response),
      onLost: (reason) => this.handleLost(channel, reason),
    });
  }

  private now(): number {
    return performance.now() - this.start;
  }

  private sendDue(): void {
    if (this.closed) return;
    const elapsed = this.now();
    const due = this.schedule.countDue(elapsed);
    // Servers close idle connections, so all take turns.
    while (this.sent < due && this.idle.length > 0) this.send(this.idle.shift() as Channel);
    if (elapsed >= this.schedule.endMs && this.sent >= due && this.countPending() === 0) this.finish();
  }

  private countPending(): number {
    return this.sent - this.succeeded - this.failed;
  }

  private send(channel: Channel): void {
    const request = this.nextRequest();
    channel.request = request;
    channel.sentAt = this.now();
    channel.dueAt = this.schedule.dueAt(this.sent++) ?? channel.sentAt;
    this.countsOf(request.operation).bytesSent += (channel.connection as Connection).send(request);
  }

  private countsOf(operation: Operation): OperationCounts {
    const known = this.operations.get(operation);
    if (known !== undefined) return known;
    const counts: OperationCounts = {
      ...{ latencies: createHistogram(), requests: 0, errors: new Map() },
      ...{ bytesSent: 0, bytesReceived: 0 },
    };
    this.operations.set(operation, counts);
    return counts;
  }

  private handleResponse(channel: Channel, { status, body, bytes, isLast }: HttpResponse): void {
    const { request } = channel;
    if (request === null) return;
    channel.request = null;
    this.lastResponse = this.now();
    this.countsOf(request.operation).bytesReceived += bytes;
    if (status === 200) this.recordSuccess(channel, request);
    else this.recordFailure(request, describeError(status, body), isUncertain(status));
    if (isLast) {
      channel.connection?.close();
      void this.reconnect(channel);
    } else {
      this.idle.push(channel);
      this.sendDue();
    }
  }

  private recordSuccess({ dueAt }: Channel, request: LoadRequest): void {
    const counts = this.countsOf(request.operation);
    this.succeeded += 1;
    counts.requests += 1;
    this.answers += request.answers;
    for (const learner of request.learners) (this.acknowledged[learner] as number) += 1;
    counts.latencies.record(Math.max(1, Math.round(1000 * (this.lastResponse - dueAt))));
  }

  /** @param isUncertain the service may have counted the answers @param count such requests */
  private recordFailure(request: LoadRequest, reason: string, isUncertain: boolean, count = 1): void {
    this.failed += count;
    const { errors } = this.countsOf(request.operation);
    errors.set(reason, (errors.get(reason) ?? 0) + count);
    if (this.plan.failsFast)
      this.fail(new Error(`${reason} for ${request.path} ${request.body?.slice(0, maxShownBytes) ?? ''}`));
    if (!isUncertain || request.answers === 0) return;
    this.unsettled.push(request);
    if (this.unsettled.length >= maxUnsettled) this.giveUp();
  }

  private handleLost(channel: Channel, reason: string): void {
    const { request } = channel;
    channel.request = null;
    if (request !== null) this.recordFailure(request, reason, true);
    else if (this.plan.failsFast) this.fail(new Error(reason));
    void this.reconnect(channel);
  }

  /** Retries until the load ends. */
  private async reconnect(channel: Channel): Promise<void> {
    channel.connection = null;
    const place = this.idle.indexOf(channel);
    if (place >= 0) this.idle.splice(place, 1);
    const connection = await this.connect(channel).catch(() => null);
    if (this.closed) connection?.close();
    else if (connection === null)
      this.timers.push(setTimeout(() => void this.reconnect(channel), reconnectMs));
    else {
      channel.connection = connection;
      this.idle.push(channel);
    }
  }

  private checkTime(): void {
    const now = this.now();
    this.onProgress({ responses: this.succeeded, errors: this.failed });
    for (const channel of this.channels) {
      if (channel.request === null || now - channel.sentAt < requestTimeoutMs) continue;
      channel.connection?.close();
      this.handleLost(channel, `no response within ${requestTimeoutMs / 1000} s`);
    }
    if (now > this.schedule.endMs + this.plan.graceMs) this.giveUp();
  }

  /** Requests without a response count as errors, and so do due requests that were not sent. */
  private giveUp(): void {
    if (this.closed) return;
    this.closed = true;
    for (const { request } of this.channels)
      if (request !== null) this.recordFailure(request, 'no response at the end', true);
    const due = this.schedule.countDue(Math.min(this.now(), this.schedule.endMs));
    const left = Number.isFinite(due) ? due - this.sent : 0;
    // Drawing all of them could take minutes.
    if (left > 0) this.recordFailure(this.nextRequest(), 'not sent: all connections were busy', false, left);
    this.finish();
  }

  private result(utilization: number): ThreadResult {
    return {
      operations: this.operations,
      acknowledged: this.acknowledged,
      answers: this.answers,
      unsettled: this.unsettled,
      numbersUsed: this.numbers * this.plan.threads,
      seconds: Math.max(this.lastResponse, Math.min(this.now(), this.schedule.endMs)) / 1000,
      utilization,
    };
  }
}

const isUncertain = (status: number): boolean => status < 400 || status >= 500 || status === 409;

/** Status and error code; for 207 the code of the first failed answer. */
function describeError(status: number, body: string): string {
  const code = /"code":"([A-Z_]+)"/.exec(body)?.[1];
  return code === undefined ? `${status}` : `${status} ${code}`;
}
