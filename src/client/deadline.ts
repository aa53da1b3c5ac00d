import { SkilltraceError } from './errors.js';

/** Limit of setTimeout. */
const maxTimerMs = 2 ** 31 - 1;

export const startTimer = (callback: () => void, ms: number) =>
  setTimeout(callback, Math.min(Math.max(0, ms), maxTimerMs));

const createAbortError = (signal: AbortSignal): SkilltraceError =>
  new SkilltraceError('ABORTED', 'The call was aborted', { cause: signal.reason });

/** Timeout plus the caller's signal: Node 18 lacks AbortSignal.any. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #onCallerAbort = (): void => this.#controller.abort();
  #hasTimedOut = false;

  /** @param ms limit per step */
  constructor(
    private readonly ms: number,
    private readonly caller: AbortSignal | undefined,
  ) {
    if (caller?.aborted) this.#onCallerAbort();
    caller?.addEventListener('abort', this.#onCallerAbort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Call it after the last step in any case. */
  release(): void {
    this.caller?.removeEventListener('abort', this.#onCallerAbort);
  }

  /** @throws SkilltraceError ABORTED, TIMEOUT, NETWORK_ERROR */
  async guard<Value>(step: () => Promise<Value>): Promise<Value> {
    const ending = startTimer(() => {
      this.#hasTimedOut = true;
      this.#controller.abort();
    }, this.ms);
    try {
      return await step();
    } catch (error) {
      throw this.#toError(error);
    } finally {
      clearTimeout(ending);
    }
  }

  #toError(cause: unknown): SkilltraceError {
    if (this.caller?.aborted) return createAbortError(this.caller);
    if (this.#hasTimedOut)
      return new SkilltraceError('TIMEOUT', `No response within ${this.ms} ms`, { cause });
    return new SkilltraceError('NETWORK_ERROR', 'The service is unreachable', { cause });
  }
}

/** The operation continues when the wait ends. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; absent: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** @throws SkilltraceError ABORTED, TIMEOUT, and errors of `work` */
export function waitWithTimeout<Value>(
  work: Promise<Value>,
  { signal, timeoutMs }: WaitOptions,
): Promise<Value> {
  let late: ReturnType<typeof startTimer> | undefined;
  let stop = (): void => undefined;
  const ended = new Promise<never>((_, reject) => {
    stop = () => reject(createAbortError(signal as AbortSignal));
    const message = `Not completed within ${timeoutMs} ms`;
    if (timeoutMs !== undefined)
      late = startTimer(() => reject(new SkilltraceError('TIMEOUT', message)), timeoutMs);
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
  let waking: ReturnType<typeof startTimer> | undefined;
  const awake = new Promise<void>((resolve) => {
    waking = startTimer(resolve, ms);
  });
  return waitWithTimeout(awake, { signal }).finally(() => clearTimeout(waking));
}
