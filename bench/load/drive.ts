import { createHistogram } from 'node:perf_hooks';
import { type Connection, openConnection } from './connection.js';
import type { LoadPlan, LoadResult, Percentiles } from './plan.js';
import { fill, type Request } from './pool.js';
import { closedLoop, openLoop, type Schedule } from './schedule.js';

/** Maximum delay of a due request; it counts as latency. */
const tickMs = 1;
/** Opening thousands one by one takes so long that the server closes the first as idle. */
const openedAtOnce = 100;
/** Time for responses after the schedule ends. */
const graceMs = 20_000;
const shownBytes = 500;
const unavailable = 503;

/** @throws Error if a response is missing, or has another status than 200 (or 503 with `mayRefuse`) */
export async function drive(plan: LoadPlan, requests: readonly Request[]): Promise<LoadResult> {
  const load = new Load(plan, requests);
  try {
    return await load.run();
  } finally {
    load.close();
  }
}

class Load {
  private readonly schedule: Schedule;
  private readonly late = createHistogram();
  private readonly idle: Lane[] = [];
  private readonly lanes: Lane[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly done: Promise<void>;
  private finish: () => void = () => undefined;
  private fail: (error: Error) => void = () => undefined;
  private start = 0;
  private sent = 0;
  private answered = 0;
  private answers = 0;
  private refused = 0;
  private number: number;

  constructor(
    private readonly plan: LoadPlan,
    private readonly requests: readonly Request[],
  ) {
    const { rate, seconds } = plan;
    this.schedule = rate === null ? closedLoop(seconds) : openLoop(rate, seconds);
    this.number = plan.firstAnswer;
    this.done = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
  }

  async run(): Promise<LoadResult> {
    const { connections } = this.plan;
    while (this.lanes.length < connections) {
      const length = Math.min(openedAtOnce, connections - this.lanes.length);
      this.lanes.push(...(await Promise.all(Array.from({ length }, () => this.openLane()))));
    }
    this.idle.push(...this.lanes);
    this.start = performance.now();
    this.timers.push(setInterval(() => this.sendDue(), tickMs));
    const giveUp = (): void =>
      this.fail(new Error(`${this.sent - this.answered - this.refused} requests were not answered in time`));
    this.timers.push(setTimeout(giveUp, this.schedule.endMs + graceMs));
    this.sendDue();
    await this.done;
    return this.result((performance.now() - this.start) / 1000);
  }

  close(): void {
    this.timers.forEach(clearTimeout);
    for (const { connection } of this.lanes) connection.close();
  }

  private async openLane(): Promise<Lane> {
    const connection = await openConnection(this.plan.port, {
      onAnswer: (status) => this.take(lane, status),
      onLost: (reason) => this.fail(new Error(reason)),
    });
    const lane: Lane = { connection, request: null, place: 0 };
    return lane;
  }

  private sendDue(): void {
    const elapsed = performance.now() - this.start;
    const due = this.schedule.dueBy(elapsed);
    // Servers close idle connections, so all take turns.
    while (this.sent < due && this.idle.length > 0) this.send(this.idle.shift() as Lane);
    const allSent = elapsed >= this.schedule.endMs && this.sent >= due;
    if (allSent && this.idle.length === this.lanes.length) this.finish();
  }

  private send(lane: Lane): void {
    const request = this.requests[this.sent % this.requests.length] as Request;
    fill(request, this.number);
    this.number += request.answers;
    lane.request = request;
    lane.place = this.sent++;
    lane.connection.send(request.bytes);
  }

  private take(lane: Lane, status: number): void {
    const { bytes } = lane.request as Request;
    if (status === 200) this.accept(lane);
    else if (status === unavailable && this.plan.mayRefuse === true) this.refused += 1;
    else {
      this.fail(new Error(`status ${status} for ${bytes.subarray(0, shownBytes)}`));
      return;
    }
    this.idle.push(lane);
    this.sendDue();
  }

  private accept(lane: Lane): void {
    this.answered += 1;
    this.answers += (lane.request as Request).answers;
    const due = this.schedule.dueAt(lane.place);
    if (due !== null) {
      const ms = performance.now() - this.start - due;
      this.late.record(Math.max(1, Math.round(1000 * ms)));
    }
  }

  private result(seconds: number): LoadResult {
    return {
      requests: this.answered,
      answers: this.answers,
      refused: this.refused,
      offered: this.plan.rate,
      numbersUsed: this.number - this.plan.firstAnswer,
      seconds,
      latency: this.plan.rate === null ? null : this.percentiles(),
    };
  }

  private percentiles(): Percentiles {
    const ms = (percentile: number): number => this.late.percentile(percentile) / 1000;
    return { p50: ms(50), p90: ms(90), p99: ms(99), p999: ms(99.9), max: this.late.max / 1000 };
  }
}

interface Lane {
  readonly connection: Connection;
  request: Request | null;
  place: number;
}
