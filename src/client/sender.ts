import { Alarm } from './alarm.js';
import { deliver, isOfAnswers, type Outcome } from './delivery.js';
import { SkilltraceError } from './errors.js';
import type { QueueLimits } from './limits.js';
import { Lines, type Queued } from './lines.js';
import { delayMs } from './retry.js';
import type { Transport } from './transport.js';

interface SenderEvents {
  readonly isHurried: () => boolean;
  /** The answer was counted, or never will be. */
  readonly onSettled: (queued: Queued, error: SkilltraceError | null) => void;
  /** Sending pauses until `resume`. */
  readonly onStopped: (error: SkilltraceError) => void;
}

/** Sends batches with at most one answer per learner. */
export class Sender {
  readonly #waiting = new Lines();
  readonly #alarm = new Alarm(() => this.#pump());
  readonly #requests = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  /** Concurrent failures count once. */
  #failures = 0;
  /** Unix milliseconds. */
  #restsUntil = 0;
  #isStopped = false;
  #batchBytes: number;

  constructor(
    private readonly transport: Transport,
    private readonly limits: QueueLimits,
    private readonly events: SenderEvents,
  ) {
    this.#batchBytes = limits.batchBytes;
  }

  get unsettled(): Lines {
    return this.#waiting;
  }

  add(queued: Queued): void {
    this.#waiting.add(queued);
    const { batchAnswers, lingerMs } = this.limits;
    if (this.events.isHurried() || this.#waiting.readyCount >= batchAnswers) this.#pump();
    else this.#alarm.set(queued.stored.queuedAt + lingerMs);
  }

  /** Resumes sending, also after a stop. */
  resume(): void {
    this.#isStopped = false;
    this.#pump();
  }

  async end(): Promise<void> {
    this.#ending.abort();
    this.#alarm.clear();
    await Promise.all(this.#requests);
  }

  get #isOff(): boolean {
    return this.#isStopped || this.#ending.signal.aborted;
  }

  get #pausedUntil(): number {
    return Math.max(this.#restsUntil, this.transport.pace.until);
  }

  get #dueAt(): number {
    const { batchAnswers, lingerMs } = this.limits;
    const isFull = this.events.isHurried() || this.#waiting.readyCount >= batchAnswers;
    return this.#waiting.dueAt(isFull ? 0 : lingerMs);
  }

  #pump(): void {
    const { requests, batchAnswers } = this.limits;
    const mayGo = (): boolean =>
      !this.#isOff && this.#waiting.readyCount > 0 && this.#requests.size < requests;
    const isResting = this.#pausedUntil > Date.now();
    while (!isResting && mayGo() && this.#dueAt <= Date.now())
      this.#start(this.#waiting.take({ answers: batchAnswers, bytes: this.#batchBytes }, Date.now()));
    if (mayGo()) this.#alarm.set(isResting ? this.#pausedUntil : this.#dueAt);
  }

  #start(batch: readonly Queued[]): void {
    const request = this.#deliver(batch).then(() => {
      this.#requests.delete(request);
      this.#pump();
    });
    this.#requests.add(request);
  }

  async #deliver(batch: readonly Queued[]): Promise<void> {
    const fresh = batch.filter((queued) => !this.#expire(queued));
    if (fresh.length === 0) return;
    try {
      const outcomes = await deliver(this.transport, fresh, this.#ending.signal);
      this.#failures = 0;
      for (const [i, queued] of fresh.entries()) this.#settle(queued, outcomes[i] as Outcome);
    } catch (error) {
      if (!(error instanceof SkilltraceError)) throw error;
      await this.#refuse(fresh, error);
    }
  }

  #expire(queued: Queued): boolean {
    const { maxAgeMs } = this.limits;
    if (Date.now() - queued.stored.queuedAt <= maxAgeMs) return false;
    const message = `Not confirmed within ${maxAgeMs} ms; it may have been counted`;
    this.#settle(queued, new SkilltraceError('EXPIRED', message));
    return true;
  }

  #settle(queued: Queued, outcome: Outcome): void {
    if (outcome?.retryable) {
      queued.failures += 1;
      const waitMs = delayMs(this.transport.settings.retry, queued.failures, outcome);
      this.#waiting.putBack(queued, Date.now() + waitMs);
    } else {
      this.#waiting.settle(queued);
      this.events.onSettled(queued, outcome);
    }
  }

  /** No answer of the batch was counted, or the result is unknown. */
  async #refuse(batch: readonly Queued[], error: SkilltraceError): Promise<void> {
    if (isOfAnswers(error)) return this.#halve(batch, error);
    this.#putBack(batch);
    if (error.retryable) this.#rest(error);
    else if (!this.#isOff) this.#stop(error);
  }

  /** Each failure can extend the pause. */
  #rest(error: SkilltraceError): void {
    const now = Date.now();
    if (now >= this.#restsUntil) this.#failures += 1;
    const waitMs = delayMs(this.transport.settings.retry, this.#failures, error);
    this.#restsUntil = Math.max(this.#restsUntil, now + waitMs);
  }

  /** An answer is invalid or the batch too large. */
  async #halve(batch: readonly Queued[], { status }: SkilltraceError): Promise<void> {
    if (status === 413) this.#batchBytes = Math.ceil(bytesOf(batch) / 2);
    const middle = Math.ceil(batch.length / 2);
    for (const half of [batch.slice(0, middle), batch.slice(middle)])
      if (this.#isOff || this.#pausedUntil > Date.now()) this.#putBack(half);
      else await this.#deliver(half);
  }

  #putBack(batch: readonly Queued[]): void {
    for (const queued of batch) this.#waiting.putBack(queued, 0);
  }

  #stop(error: SkilltraceError): void {
    this.#isStopped = true;
    this.#alarm.clear();
    this.events.onStopped(error);
  }
}

const bytesOf = (batch: readonly Queued[]): number => batch.reduce((sum, { bytes }) => sum + bytes, 0);
