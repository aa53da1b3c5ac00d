import { timer } from './deadline.js';
import type { SkilltraceError } from './errors.js';
import { delayMs, type RetryPolicy } from './retry.js';

/** When the whole queue goes on after requests that failed. */
export class Rest {
  #failures = 0;
  #until = 0;

  constructor(private readonly policy: RetryPolicy) {}

  /** Unix milliseconds before which nothing is sent. */
  get until(): number {
    return this.#until;
  }

  /** A request failed. Those that fail beside it say nothing new, but for what they ask to wait. */
  begin(error: SkilltraceError): void {
    const now = Date.now();
    if (now >= this.#until) this.#failures += 1;
    this.#until = Math.max(this.#until, now + delayMs(this.policy, this.#failures, error));
  }

  /** A request succeeded. */
  end(): void {
    this.#failures = 0;
  }
}

/** One timer that rings at the earliest time that it was set to. There is none while nothing waits: it would keep a process alive. */
export class Alarm {
  #ringing: ReturnType<typeof timer> | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(private readonly ring: () => void) {}

  /** @param at Unix milliseconds; Infinity sets nothing */
  set(at: number): void {
    if (at >= this.#at) return;
    this.clear();
    this.#at = at;
    this.#ringing = timer(() => {
      this.clear();
      this.ring();
    }, at - Date.now());
  }

  clear(): void {
    clearTimeout(this.#ringing);
    this.#at = Number.POSITIVE_INFINITY;
  }
}
