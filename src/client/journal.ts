import { SkilltraceError } from './errors.js';
import type { StoredAnswer } from './lines.js';

/**
 * Keeps what is unsent beyond the end of the process, for one client at a time. Its calls never overlap. An answer may be
 * handed out again by `load` although it was removed just before a crash: its event id makes that harmless.
 */
export interface AnswerStore {
  /** All that was added and not removed, in the order in which it was added. */
  load(): Promise<readonly StoredAnswer[]>;
  /** Resolves when the answers would survive the end of the process. */
  add(answers: readonly StoredAnswer[]): Promise<void>;
  /** To remove what is not there is no error. */
  remove(answers: readonly StoredAnswer[]): Promise<void>;
}

interface Adding {
  readonly stored: StoredAnswer;
  readonly done: () => void;
  readonly failed: (error: SkilltraceError) => void;
}

/** Writes to a store, one call at a time: what comes during one goes together in the next. */
export class Journal {
  #adding: Adding[] = [];
  #removing: StoredAnswer[] = [];
  #writing = Promise.resolve();
  #isLoaded = false;
  #failure: SkilltraceError | null = null;

  /** @param restore gets what the store holds, before anything is added */
  constructor(
    private readonly store: AnswerStore,
    private readonly restore: (stored: readonly StoredAnswer[]) => void,
  ) {
    this.#write();
  }

  /** @param whenStored called when the answer is stored, in the order of the calls. @throws SkilltraceError STORE_FAILED */
  add(stored: StoredAnswer, whenStored: () => void): Promise<void> {
    return new Promise((resolve, failed) => {
      const done = (): void => {
        whenStored();
        resolve();
      };
      this.#adding.push({ stored, done, failed });
      this.#write();
    });
  }

  /** What cannot be removed is removed with what comes next. */
  remove(stored: StoredAnswer): void {
    this.#removing.push(stored);
    this.#write();
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  /** Resolves when all is written. @throws SkilltraceError STORE_FAILED where the last write failed */
  async written(): Promise<void> {
    await this.idle();
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
      const failure = new SkilltraceError('STORE_FAILED', 'The store of unsent answers failed', { cause });
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
