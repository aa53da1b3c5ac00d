import { SkilltraceError } from './errors.js';

/** Limit of setTimeout. */
const longestMs = 2 ** 31 - 1;

export const timer = (act: () => void, ms: number) => setTimeout(act, Math.min(Math.max(0, ms), longestMs));

const aborted = (signal: AbortSignal): SkilltraceError =>
  new SkilltraceError('ABORTED', 'The call was aborted', { cause: signal.reason });

/** Timeout plus the caller's signal: Node 18 lacks AbortSignal.any. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #follow = (): void => this.#controller.abort();
  #isLate = false;

  /** @param ms limit per step */
  constructor(
    private readonly ms: number,
    private readonly caller: AbortSignal | undefined,
  ) {
    if (caller?.aborted) this.#follow();
    caller?.addEventListener('abort', this.#follow);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Call it after the last step in any case. */
  end(): void {
    this.caller?.removeEventListener('abort', this.#follow);
  }

  /** @throws SkilltraceError ABORTED, TIMEOUT, NETWORK_ERROR */
  async guard<Value>(step: () => Promise<Value>): Promise<Value> {
    const ending = timer(() => {
      this.#isLate = true;
      this.#controller.abort();
    }, this.ms);
    try {
      return await step();
    } catch (error) {
      throw this.#failure(error);
    } finally {
      clearTimeout(ending);
    }
  }

  #failure(cause: unknown): SkilltraceError {
    if (this.caller?.aborted) return aborted(this.caller);
    if (this.#isLate) return new SkilltraceError('TIMEOUT', `No answer within ${this.ms} ms`, { cause });
    return new SkilltraceError('NETWORK_ERROR', 'The service cannot be reached', { cause });
  }
}

/** The operation continues when the wait ends. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; absent: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** @throws SkilltraceError ABORTED, TIMEOUT, and errors of `work` */
export function waitFor<Value>(work: Promise<Value>, { signal, timeoutMs }: WaitOptions): Promise<Value> {
  let late: ReturnType<typeof timer> | undefined;
  let stop = (): void => undefined;
  const ended = new Promise<never>((_, reject) => {
    stop = () => reject(aborted(signal as AbortSignal));
    const message = `Not done within ${timeoutMs} ms`;
    if (timeoutMs !== undefined)
      late = timer(() => reject(new SkilltraceError('TIMEOUT', message)), timeoutMs);
  });
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  return Promise.race([work, ended]).finally(() => {
    clearTimeout(late);
    signal?.removeEventListener('abort', stop);
  });
}

/** @throws SkilltraceError ABORTED */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let waking: ReturnType<typeof timer> | undefined;
  const awake = new Promise<void>((resolve) => {
    waking = timer(resolve, ms);
  });
  return waitFor(awake, { signal }).finally(() => clearTimeout(waking));
}
