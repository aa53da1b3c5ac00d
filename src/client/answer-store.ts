import type { StoredAnswer } from './answer-queue.js';
import { SkilltraceError } from './errors.js';

/**
 * Stores unsent answers beyond the end of the process, for one client. Calls never overlap. Because of event
 * ids, `load` may return an answer that was removed just before a crash.
 */
export interface AnswerStore {
  /** Returns the answers in the order of `add`. */
  load(): Promise<readonly StoredAnswer[]>;
  /** Resolves when the answers are durable. */
  add(answers: readonly StoredAnswer[]): Promise<void>;
  /** Ignores unknown answers. */
  remove(answers: readonly StoredAnswer[]): Promise<void>;
}

interface PendingAdd {
  readonly stored: StoredAnswer;
  readonly done: () => void;
  readonly failed: (error: SkilltraceError) => void;
}

/** Calls of the store never overlap. A call includes all changes since the previous one. */
export class StoreWriter {
  #adding: PendingAdd[] = [];
  #removing: StoredAnswer[] = [];
  #writing = Promise.resolve();
  #isLoaded = false;
  #failure: SkilltraceError | null = null;

  /** @param restore called before any `add` */
  constructor(
    private readonly store: AnswerStore,
    private readonly restore: (stored: readonly StoredAnswer[]) => void,
  ) {
    this.#write();
  }

  /**
   * @param onStored called when the answer is durable, in the order of the calls.
   * @throws SkilltraceError STORE_FAILED
   */
  add(stored: StoredAnswer, onStored: () => void): Promise<void> {
    return new Promise((resolve, failed) => {
      const done = (): void => {
        onStored();
        resolve();
      };
      this.#adding.push({ stored, done, failed });
      this.#write();
    });
  }

  /** Failed removals are repeated with the next write. */
  remove(stored: StoredAnswer): void {
    this.#removing.push(stored);
    this.#write();
  }

  async waitUntilIdle(): Promise<void> {
    await this.#writing;
  }

  /** @throws SkilltraceError STORE_FAILED if the last write failed */
  async waitUntilWritten(): Promise<void> {
    await this.waitUntilIdle();
    if (this.#failure !== null) throw this.#failure;
  }

  #write(): void {
    this.#writing = this.#writing.then(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    const [adding, removing] = [this.#adding, this.#removing];
    [this.#adding, this.#removing] = [[], []];
    try {
      await this.#load();
      if (removing.length > 0) await this.store.remove(removing);
      if (adding.length > 0) await this.store.add(adding.map(({ stored }) => stored));
      this.#failure = null;
      for (const { done } of adding) done();
    } catch (cause) {
      const failure = new SkilltraceError('STORE_FAILED', 'The store for unsent answers failed', { cause });
      this.#failure = failure;
      this.#removing.unshift(...removing);
      for (const { failed } of adding) failed(failure);
    }
  }

  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    this.restore(await this.store.load());
    this.#isLoaded = true;
  }
}
