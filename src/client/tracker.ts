import {
  type IdentifiedAnswer,
  type QueuedAnswer,
  type StoredAnswer,
  toQueuedAnswer,
} from './answer-queue.js';
import { type AnswerStore, StoreWriter } from './answer-store.js';
import { type WaitOptions, waitWithTimeout } from './deadline.js';
import { SkilltraceError } from './errors.js';
import { PendingFlush } from './pending-flush.js';
import type { QueueLimits } from './queue-limits.js';
import { Sender } from './sender.js';
import type { Transport } from './transport.js';

export interface TrackerOptions {
  readonly limits: QueueLimits;
  readonly store: AnswerStore | undefined;
  readonly onUndelivered: (answer: IdentifiedAnswer, error: SkilltraceError) => void;
  readonly onStopped: (error: SkilltraceError) => void;
}

/** Connects the queue, the sender and the store. */
export class Tracker {
  readonly #sender: Sender;
  readonly #journal: StoreWriter | null;
  readonly #flushes = new Set<PendingFlush>();
  #closed: Promise<number> | null = null;
  #storing = 0;

  constructor(
    transport: Transport,
    private readonly options: TrackerOptions,
  ) {
    const sender = new Sender(transport, options.limits, {
      isFlushing: () => this.#flushes.size > 0,
      onCompleted: (queued, error) => this.#complete(queued, error),
      onStopped: (error) => this.#stop(error),
    });
    this.#sender = sender;
    const restore = (stored: readonly StoredAnswer[]): void => {
      for (const one of stored) sender.add(toQueuedAnswer(one));
    };
    this.#journal = options.store === undefined ? null : new StoreWriter(options.store, restore);
  }

  get size(): number {
    return this.#sender.pending.size + this.#storing;
  }

  /** @throws SkilltraceError CLOSED, QUEUE_FULL, STORE_FAILED */
  async add(stored: StoredAnswer): Promise<void> {
    if (this.#closed !== null) throw new SkilltraceError('CLOSED', 'The client is closed');
    if (this.size >= this.options.limits.answers)
      throw new SkilltraceError(
        'QUEUE_FULL',
        `The queue is full: ${this.size} answers are waiting for delivery`,
      );
    const queued = toQueuedAnswer(stored);
    if (this.#journal === null) return this.#sender.add(queued);
    this.#storing += 1;
    try {
      await this.#journal.add(stored, () => this.#sender.add(queued));
    } finally {
      this.#storing -= 1;
    }
  }

  /** @throws as `Skilltrace.flush` */
  async flush(options: WaitOptions): Promise<void> {
    const flush = new PendingFlush();
    this.#flushes.add(flush);
    try {
      await waitWithTimeout(this.#waitForFlush(flush), options);
    } finally {
      this.#flushes.delete(flush);
    }
  }

  /** @throws as `Skilltrace.close` */
  close(options: WaitOptions): Promise<number> {
    this.#closed ??= this.#close(options);
    return this.#closed;
  }

  async #waitForFlush(flush: PendingFlush): Promise<void> {
    await this.#journal?.waitUntilIdle();
    this.#sender.resume();
    await flush.waitFor(this.#sender.pending);
    await this.#journal?.waitUntilWritten();
  }

  async #close(options: WaitOptions): Promise<number> {
    const cause = await this.flush(options).then(
      () => null,
      (error: unknown) => error,
    );
    await this.#sender.end();
    const rest = [...this.#sender.pending];
    await this.#journal?.waitUntilWritten();
    if (this.#journal !== null) return rest.length;
    const error = new SkilltraceError(
      'CLOSED',
      'The client was closed before the service confirmed the answer',
      { cause },
    );
    for (const { stored } of rest) runCallback(() => this.options.onUndelivered(stored.answer, error));
    return 0;
  }

  #complete(queued: QueuedAnswer, error: SkilltraceError | null): void {
    for (const flush of this.#flushes) flush.complete(queued);
    const { stored } = queued;
    if (error !== null) runCallback(() => this.options.onUndelivered(stored.answer, error));
    // Only now: after a crash in between, the answer is reported again.
    this.#journal?.remove(stored);
  }

  #stop(error: SkilltraceError): void {
    for (const flush of this.#flushes) flush.fail(error);
    runCallback(() => this.options.onStopped(error));
  }
}

/** Errors of the callback become uncaught errors and do not stop the queue. */
function runCallback(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
