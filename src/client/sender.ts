import { Alarm } from './alarm.js';
import { AnswerQueue, type QueuedAnswer } from './answer-queue.js';
import { type DeliveryOutcome, deliver, isAnswerError } from './delivery.js';
import { SkilltraceError } from './errors.js';
import type { QueueLimits } from './queue-limits.js';
import { computeDelayMs } from './retry.js';
import type { Transport } from './transport.js';

interface SenderEvents {
  readonly isFlushing: () => boolean;
  /** The answer was counted, or never will be. */
  readonly onCompleted: (queued: QueuedAnswer, error: SkilltraceError | null) => void;
  /** Sending pauses until `resume`. */
  readonly onStopped: (error: SkilltraceError) => void;
}

/** Sends batches with at most one answer per learner. */
export class Sender {
  readonly #waiting = new AnswerQueue();
  readonly #alarm = new Alarm(() => this.#sendDue());
  readonly #requests = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  /** Concurrent failures count once. */
  #failures = 0;
  /** Unix milliseconds. */
  #backoffUntil = 0;
  #isStopped = false;
  #batchBytes: number;

  constructor(
    private readonly transport: Transport,
    private readonly limits: QueueLimits,
    private readonly events: SenderEvents,
  ) {
    this.#batchBytes = limits.batchBytes;
  }

  get pending(): AnswerQueue {
    return this.#waiting;
  }

  add(queued: QueuedAnswer): void {
    this.#waiting.add(queued);
    const { batchAnswers, lingerMs } = this.limits;
    if (this.events.isFlushing() || this.#waiting.readyCount >= batchAnswers) this.#sendDue();
    else this.#alarm.set(queued.stored.queuedAt + lingerMs);
  }

  /** Resumes sending, also after a stop. */
  resume(): void {
    this.#isStopped = false;
    this.#sendDue();
  }

  async end(): Promise<void> {
    this.#ending.abort();
    this.#alarm.clear();
    await Promise.all(this.#requests);
  }

  get #isInactive(): boolean {
    return this.#isStopped || this.#ending.signal.aborted;
  }

  get #pausedUntil(): number {
    return Math.max(this.#backoffUntil, this.transport.quotaPause.until);
  }

  get #dueAt(): number {
    const { batchAnswers, lingerMs } = this.limits;
    const isFull = this.events.isFlushing() || this.#waiting.readyCount >= batchAnswers;
    return this.#waiting.dueAt(isFull ? 0 : lingerMs);
  }

  #sendDue(): void {
    const { requests, batchAnswers } = this.limits;
    const canSend = (): boolean =>
      !this.#isInactive && this.#waiting.readyCount > 0 && this.#requests.size < requests;
    const isPaused = this.#pausedUntil > Date.now();
    while (!isPaused && canSend() && this.#dueAt <= Date.now())
      this.#start(this.#waiting.dequeueBatch({ answers: batchAnswers, bytes: this.#batchBytes }, Date.now()));
    if (canSend()) this.#alarm.set(isPaused ? this.#pausedUntil : this.#dueAt);
  }

  #start(batch: readonly QueuedAnswer[]): void {
    const request = this.#deliver(batch).then(() => {
      this.#requests.delete(request);
      this.#sendDue();
    });
    this.#requests.add(request);
  }

  async #deliver(batch: readonly QueuedAnswer[]): Promise<void> {
    const fresh = batch.filter((queued) => !this.#expire(queued));
    if (fresh.length === 0) return;
    try {
      const outcomes = await deliver(this.transport, fresh, this.#ending.signal);
      this.#failures = 0;
      for (const [i, queued] of fresh.entries()) this.#applyOutcome(queued, outcomes[i] as DeliveryOutcome);
    } catch (error) {
      if (!(error instanceof SkilltraceError)) throw error;
      await this.#handleFailure(fresh, error);
    }
  }

  #expire(queued: QueuedAnswer): boolean {
    const { maxAgeMs } = this.limits;
    if (Date.now() - queued.stored.queuedAt <= maxAgeMs) return false;
    const message = `Not confirmed within ${maxAgeMs} ms. The service may have counted the answer`;
    this.#applyOutcome(queued, new SkilltraceError('EXPIRED', message));
    return true;
  }

  #applyOutcome(queued: QueuedAnswer, outcome: DeliveryOutcome): void {
    if (outcome?.retryable) {
      queued.failures += 1;
      const waitMs = computeDelayMs(this.transport.settings.retry, queued.failures, outcome);
      this.#waiting.requeue(queued, Date.now() + waitMs);
    } else {
      this.#waiting.complete(queued);
      this.events.onCompleted(queued, outcome);
    }
  }

  /** No answer of the batch was counted, or the result is unknown. */
  async #handleFailure(batch: readonly QueuedAnswer[], error: SkilltraceError): Promise<void> {
    if (isAnswerError(error)) return this.#deliverHalves(batch, error);
    this.#requeue(batch);
    if (error.retryable) this.#backOff(error);
    else if (!this.#isInactive) this.#stop(error);
  }

  /** Each failure can extend the pause. */
  #backOff(error: SkilltraceError): void {
    const now = Date.now();
    if (now >= this.#backoffUntil) this.#failures += 1;
    const waitMs = computeDelayMs(this.transport.settings.retry, this.#failures, error);
    this.#backoffUntil = Math.max(this.#backoffUntil, now + waitMs);
  }

  /** An answer is invalid or the batch too large. */
  async #deliverHalves(batch: readonly QueuedAnswer[], { status }: SkilltraceError): Promise<void> {
    if (status === 413) this.#batchBytes = Math.ceil(bytesOf(batch) / 2);
    const middle = Math.ceil(batch.length / 2);
    for (const half of [batch.slice(0, middle), batch.slice(middle)])
      if (this.#isInactive || this.#pausedUntil > Date.now()) this.#requeue(half);
      else await this.#deliver(half);
  }

  #requeue(batch: readonly QueuedAnswer[]): void {
    for (const queued of batch) this.#waiting.requeue(queued, 0);
  }

  #stop(error: SkilltraceError): void {
    this.#isStopped = true;
    this.#alarm.clear();
    this.events.onStopped(error);
  }
}

const bytesOf = (batch: readonly QueuedAnswer[]): number => batch.reduce((sum, { bytes }) => sum + bytes, 0);
