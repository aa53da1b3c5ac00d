import { createHistogram } from 'node:perf_hooks';
import { type Connection, openConnection } from './connection.js';
import type { LoadPlan, LoadResult, Percentiles } from './plan.js';
import { fillNumbers, type PooledRequest } from './request-pool.js';
import { createClosedLoop, createOpenLoop, type Schedule } from './schedule.js';

/** Maximum delay of a due request; it counts as latency. */
const tickMs = 1;
/** Opening thousands one by one takes so long that the server closes the first as idle. */
const parallelOpens = 100;
/** Time for responses after the schedule ends. */
const graceMs = 20_000;
const maxShownBytes = 500;
const unavailable = 503;

/** @throws Error if a response is missing, or has another status than 200 (or 503 with `mayRefuse`) */
export async function driveLoad(plan: LoadPlan, requests: readonly PooledRequest[]): Promise<LoadResult> {
  const load = new Load(plan, requests);
  try {
    return await load.run();
  } finally {
    load.close();
  }
}

class Load {
  private readonly schedule: Schedule;
  private readonly latencies = createHistogram();
  private readonly idle: Channel[] = [];
  private readonly channels: Channel[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly done: Promise<void>;
  private finish: () => void = () => undefined;
  private fail: (error: Error) => void = () => undefined;
  private start = 0;
  private sent = 0;
  private answered = 0;
  private answers = 0;
  private rejected = 0;
  private nextNumber: number;

  constructor(
    private readonly plan: LoadPlan,
    private readonly requests: readonly PooledRequest[],
  ) {
    const { rate, seconds } = plan;
    this.schedule = rate === null ? createClosedLoop(seconds) : createOpenLoop(rate, seconds);
    this.nextNumber = plan.firstAnswer;
    this.done = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
  }

  async run(): Promise<LoadResult> {
    const { connections } = this.plan;
    while (this.channels.length < connections) {
      const length = Math.min(parallelOpens, connections - this.channels.length);
      this.channels.push(...(await Promise.all(Array.from({ length }, () => this.openChannel()))));
    }
    this.idle.push(...this.channels);
    this.start = performance.now();
    this.timers.push(setInterval(() => this.sendDue(), tickMs));
    const giveUp = (): void =>
      this.fail(new Error(`${this.sent - this.answered - this.rejected} requests got no response in time`));
    this.timers.push(setTimeout(giveUp, this.schedule.endMs + graceMs));
    this.sendDue();
    await this.done;
    return this.result((performance.now() - this.start) / 1000);
  }

  close(): void {
    this.timers.forEach(clearTimeout);
    for (const { connection } of this.channels) connection.close();
  }

  private async openChannel(): Promise<Channel> {
    const connection = await openConnection(this.plan.port, {
      onResponse: (status) => this.handleResponse(channel, status),
      onLost: (reason) => this.fail(new Error(reason)),
    });
    const channel: Channel = { connection, request: null, requestIndex: 0, sentAt: 0 };
    return channel;
  }

  private sendDue(): void {
    const elapsed = performance.now() - this.start;
    const due = this.schedule.countDue(elapsed);
    // Servers close idle connections, so all take turns.
    while (this.sent < due && this.idle.length > 0) this.send(this.idle.shift() as Channel);
    const allSent = elapsed >= this.schedule.endMs && this.sent >= due;
    if (allSent && this.idle.length === this.channels.length) this.finish();
  }

  private send(channel: Channel): void {
    const request = this.requests[this.sent % this.requests.length] as PooledRequest;
    fillNumbers(request, this.nextNumber);
    this.nextNumber += request.answers;
    channel.request = request;
    channel.requestIndex = this.sent++;
    channel.sentAt = performance.now() - this.start;
    channel.connection.send(request.bytes);
  }

  private handleResponse(channel: Channel, status: number): void {
    const { bytes } = channel.request as PooledRequest;
    if (status === 200) this.recordSuccess(channel);
    else if (status === unavailable && this.plan.mayRefuse === true) this.rejected += 1;
    else {
      this.fail(new Error(`HTTP status ${status} for ${bytes.subarray(0, maxShownBytes)}`));
      return;
    }
    this.idle.push(channel);
    this.sendDue();
  }

  private recordSuccess(channel: Channel): void {
    this.answered += 1;
    this.answers += (channel.request as PooledRequest).answers;
    const due = this.schedule.dueAt(channel.requestIndex) ?? channel.sentAt;
    const ms = performance.now() - this.start - due;
    this.latencies.record(Math.max(1, Math.round(1000 * ms)));
  }

  private result(seconds: number): LoadResult {
    return {
      requests: this.answered,
      answers: this.answers,
      rejected: this.rejected,
      offered: this.plan.rate,
      numbersUsed: this.nextNumber - this.plan.firstAnswer,
      seconds,
      latency: this.percentiles(),
    };
  }

  private percentiles(): Percentiles {
    const ms = (percentile: number): number => this.latencies.percentile(percentile) / 1000;
    return { p50: ms(50), p90: ms(90), p99: ms(99), p999: ms(99.9), max: this.latencies.max / 1000 };
  }
}

interface Channel {
  readonly connection: Connection;
  request: PooledRequest | null;
  requestIndex: number;
  /** Milliseconds since the start. */
  sentAt: number;
}
