import { startTimer } from './deadline.js';

/** One timer, for the earliest time. It runs only when needed: a timer keeps the process alive. */
export class Alarm {
  #ringing: ReturnType<typeof startTimer> | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(private readonly onTime: () => void) {}

  /** @param at Unix milliseconds or Infinity */
  set(at: number): void {
    if (at >= this.#at) return;
    this.clear();
    this.#at = at;
    this.#ringing = startTimer(() => {
      this.clear();
      this.onTime();
    }, at - Date.now());
  }

  clear(): void {
    clearTimeout(this.#ringing);
    this.#at = Number.POSITIVE_INFINITY;
  }
}
