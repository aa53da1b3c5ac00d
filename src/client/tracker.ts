import { type WaitOptions, waitFor } from './deadline.js';
import { SkilltraceError } from './errors.js';
import { Flush } from './flush.js';
import { type AnswerStore, Journal } from './journal.js';
import type { QueueLimits } from './limits.js';
import { type IdentifiedAnswer, type Queued, queuedOf, type StoredAnswer } from './lines.js';
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
  readonly #journal: Journal | null;
  readonly #flushes = new Set<Flush>();
  #closed: Promise<number> | null = null;
  #storing = 0;

  constructor(
    transport: Transport,
    private readonly options: TrackerOptions,
  ) {
    const sender = new Sender(transport, options.limits, {
      isHurried: () => this.#flushes.size > 0,
      onSettled: (queued, error) => this.#settle(queued, error),
      onStopped: (error) => this.#stop(error),
    });
    this.#sender = sender;
    const restore = (stored: readonly StoredAnswer[]): void => {
      for (const one of stored) sender.add(queuedOf(one));
    };
    this.#journal = options.store === undefined ? null : new Journal(options.store, restore);
  }

  get size(): number {
    return this.#sender.unsettled.size + this.#storing;
  }

  /** @throws SkilltraceError CLOSED, QUEUE_FULL, STORE_FAILED */
  async add(stored: StoredAnswer): Promise<void> {
    if (this.#closed !== null) throw new SkilltraceError('CLOSED', 'The client is closed');
    if (this.size >= this.options.limits.answers)
      throw new SkilltraceError('QUEUE_FULL', `${this.size} answers are not settled yet`);
    const queued = queuedOf(stored);
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
    const flush = new Flush();
    this.#flushes.add(flush);
    try {
      await waitFor(this.#settled(flush), options);
    } finally {
      this.#flushes.delete(flush);
    }
  }

  /** @throws as `Skilltrace.close` */
  close(options: WaitOptions): Promise<number> {
    this.#closed ??= this.#close(options);
    return this.#closed;
  }

  async #settled(flush: Flush): Promise<void> {
    await this.#journal?.idle();
    this.#sender.resume();
    await flush.of(this.#sender.unsettled);
    await this.#journal?.written();
  }

  async #close(options: WaitOptions): Promise<number> {
    const cause = await this.flush(options).then(
      () => null,
      (error: unknown) => error,
    );
    await this.#sender.end();
    const rest = [...this.#sender.unsettled];
    await this.#journal?.written();
    if (this.#journal !== null) return rest.length;
    const error = new SkilltraceError('CLOSED', 'Not confirmed before the client was closed', { cause });
    for (const { stored } of rest) tell(() => this.options.onUndelivered(stored.answer, error));
    return 0;
  }

  #settle(queued: Queued, error: SkilltraceError | null): void {
    for (const flush of this.#flushes) flush.settle(queued);
    const { stored } = queued;
    if (error !== null) tell(() => this.options.onUndelivered(stored.answer, error));
    // Only now: after a crash in between, the answer is reported again.
    this.#journal?.remove(stored);
  }

  #stop(error: SkilltraceError): void {
    for (const flush of this.#flushes) flush.fail(error);
    tell(() => this.options.onStopped(error));
  }
}

/** Errors of the callback become uncaught errors and do not stop the queue. */
function tell(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
