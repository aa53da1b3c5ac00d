import type { QueuedAnswer } from './answer-queue.js';
import type { SkilltraceError } from './errors.js';

/** Waits until answers are counted or rejected. */
export class PendingFlush {
  readonly #open = new Set<QueuedAnswer>();
  #wake = (): void => undefined;
  #failure: SkilltraceError | null = null;

  /** @throws SkilltraceError that `fail` was called with */
  async waitFor(answers: Iterable<QueuedAnswer>): Promise<void> {
    for (const queued of answers) this.#open.add(queued);
    const settled = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    if (this.#open.size > 0 && this.#failure === null) await settled;
    if (this.#failure !== null) throw this.#failure;
  }

  complete(queued: QueuedAnswer): void {
    this.#open.delete(queued);
    if (this.#open.size === 0) this.#wake();
  }

  fail(error: SkilltraceError): void {
    this.#failure = error;
    this.#wake();
  }
}
