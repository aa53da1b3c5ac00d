/// <reference lib="esnext.disposable" preserve="true" />
import { identified } from './answer.js';
import { Calls } from './calls.js';
import type { WaitOptions } from './deadline.js';
import type { SkilltraceError } from './errors.js';
import type { AnswerStore } from './journal.js';
import { type QueueLimits, standardLimits } from './limits.js';
import type { IdentifiedAnswer } from './lines.js';
import { type RetryPolicy, standardRetry } from './retry.js';
import { Tracker } from './tracker.js';
import { Transport } from './transport.js';
import type { Answer } from './types.js';

export interface SkilltraceOptions {
  /** Of the service, or of the platform's own proxy in front of it: what comes before `/api/v1`. */
  readonly baseUrl: string;
  /** Asked for each request where it is a function; none where a proxy adds it. */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Longest wait for an answer, in milliseconds (default 15,000). */
  readonly timeoutMs?: number | undefined;
  readonly retry?: Partial<RetryPolicy> | undefined;
  readonly queue?: Partial<QueueLimits> | undefined;
  /** Keeps what is unsent beyond the end of the process. */
  readonly store?: AnswerStore | undefined;
  /** Hears of each answer of `track` that is not counted, or of which nobody knows; by default it is logged. */
  readonly onUndelivered?: ((answer: IdentifiedAnswer, error: SkilltraceError) => void) | undefined;
  /**
   * Hears that the service refuses every request, with UNAUTHORIZED or FORBIDDEN for one. The queue keeps what it has and
   * goes on with the next `flush`. By default it is logged.
   */
  readonly onStopped?: ((error: SkilltraceError) => void) | undefined;
}

const standardTimeoutMs = 15_000;
const standardCloseMs = 10_000;

/** Where the platform has none yet, that of polyfills. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** A client of one service with one key. */
export class Skilltrace extends Calls {
  readonly #tracker: Tracker;

  constructor(options: SkilltraceOptions) {
    const { baseUrl, apiKey, timeoutMs = standardTimeoutMs, retry, queue, store } = options;
    const transport = new Transport({
      baseUrl,
      apiKey,
      // Looked up at each call, and called without `this`, which browsers insist on.
      fetch: options.fetch ?? ((...request) => fetch(...request)),
      timeoutMs,
      retry: { ...standardRetry, ...retry },
    });
    super(transport);
    const { onUndelivered = logUndelivered, onStopped = logStopped } = options;
    const limits = { ...standardLimits, ...queue };
    this.#tracker = new Tracker(transport, { limits, store, onUndelivered, onStopped });
  }

  /**
   * Queues an answer, which is sent in the background: in batches, those of a learner in the order of the calls, until it is
   * counted or `onUndelivered` hears of it. Its time is that of the call where it has none.
   *
   * @returns its event id, once it is queued and, with a store, kept there
   * @throws SkilltraceError QUEUE_FULL, CLOSED, STORE_FAILED
   */
  async track(answer: Answer): Promise<string> {
    const now = Date.now();
    const sent = identified(answer, now);
    await this.#tracker.add({ answer: sent, queuedAt: now });
    return sent.event_id;
  }

  /** Answers of `track` that are not settled. */
  get queued(): number {
    return this.#tracker.size;
  }

  /**
   * Sends at once what `track` queued, and resolves when all of it is settled. A queue that was stopped goes on.
   * @throws SkilltraceError TIMEOUT, ABORTED, STORE_FAILED, or the error that stopped the queue
   */
  flush(options: WaitOptions = {}): Promise<void> {
    return this.#tracker.flush(options);
  }

  /**
   * Takes no more answers and sends what is queued, for `timeoutMs` at most (default 10,000). What is left is kept in the
   * store, and without one told to `onUndelivered`.
   *
   * @returns how many answers are left in the store
   * @throws SkilltraceError STORE_FAILED
   */
  close({ timeoutMs = standardCloseMs, signal }: WaitOptions = {}): Promise<number> {
    return this.#tracker.close({ timeoutMs, signal });
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}

const logUndelivered = ({ event_id }: IdentifiedAnswer, error: SkilltraceError): void =>
  console.error(`Skilltrace: answer ${event_id} was not delivered: ${error.code} ${error.message}`);

const logStopped = (error: SkilltraceError): void =>
  console.error(`Skilltrace: nothing is sent until the next flush: ${error.code} ${error.message}`);
