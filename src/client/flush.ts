import type { SkilltraceError } from './errors.js';
import type { Queued } from './lines.js';

/** Waits until answers are counted or rejected. */
export class Flush {
  readonly #open = new Set<Queued>();
  #wake = (): void => undefined;
  #failure: SkilltraceError | null = null;

  /** @throws SkilltraceError that `fail` was called with */
  async of(answers: Iterable<Queued>): Promise<void> {
    for (const queued of answers) this.#open.add(queued);
    const settled = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    if (this.#open.size > 0 && this.#failure === null) await settled;
    if (this.#failure !== null) throw this.#failure;
  }

  settle(queued: Queued): void {
    this.#open.delete(queued);
    if (this.#open.size === 0) this.#wake();
  }

  fail(error: SkilltraceError): void {
    this.#failure = error;
    this.#wake();
  }
}
