/// <reference lib="esnext.disposable" preserve="true" />

import type { IdentifiedAnswer } from './answer-queue.js';
import type { AnswerStore } from './answer-store.js';
import { ApiCalls } from './api-calls.js';
import type { WaitOptions } from './deadline.js';
import type { SkilltraceError } from './errors.js';
import { toIdentifiedAnswer } from './identified-answer.js';
import { defaultLimits, type QueueLimits } from './queue-limits.js';
import { defaultRetry, type RetryPolicy } from './retry.js';
import { Tracker } from './tracker.js';
import { Transport } from './transport.js';
import type { Answer } from './types.js';

export interface SkilltraceOptions {
  /** URL before `/api/v1`; may be a proxy. */
  readonly baseUrl: string;
  /** A function is called for each request. A proxy may add the key instead. */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Milliseconds to wait for a response. Default: 15,000. */
  readonly timeoutMs?: number | undefined;
  readonly retry?: Partial<RetryPolicy> | undefined;
  readonly queue?: Partial<QueueLimits> | undefined;
  readonly store?: AnswerStore | undefined;
  /** Called for each answer of `track` that is rejected or has an unknown result. Default: logs it. */
  readonly onUndelivered?: ((answer: IdentifiedAnswer, error: SkilltraceError) => void) | undefined;
  /**
   * Called when the service rejects all requests. The queue resumes with the next `flush`. Default: logs it.
   */
  readonly onStopped?: ((error: SkilltraceError) => void) | undefined;
}

const defaultTimeoutMs = 15_000;
const defaultCloseMs = 10_000;

/** Polyfills use this name. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

export class Skilltrace extends ApiCalls {
  readonly #tracker: Tracker;

  constructor(options: SkilltraceOptions) {
    const { baseUrl, apiKey, timeoutMs = defaultTimeoutMs, retry, queue, store } = options;
    const transport = new Transport({
      baseUrl,
      apiKey,
      // Resolved at each call, and called without `this`, as browsers require.
      fetch: options.fetch ?? ((...request) => fetch(...request)),
      timeoutMs,
      retry: { ...defaultRetry, ...retry },
    });
    super(transport);
    const { onUndelivered = logUndelivered, onStopped = logStopped } = options;
    const limits = { ...defaultLimits, ...queue };
    this.#tracker = new Tracker(transport, { limits, store, onUndelivered, onStopped });
  }

  /**
   * Queues an answer. It is sent in the background, in the order of a learner's calls, until it is counted or
   * passed to `onUndelivered`. A missing time becomes the time of the call.
   * @returns the event id, when the answer is queued and stored
   * @throws SkilltraceError QUEUE_FULL, CLOSED, STORE_FAILED
   */
  async track(answer: Answer): Promise<string> {
    const now = Date.now();
    const sent = toIdentifiedAnswer(answer, now);
    await this.#tracker.add({ answer: sent, queuedAt: now });
    return sent.event_id;
  }

  /** Pending answers of `track`. */
  get queued(): number {
    return this.#tracker.size;
  }

  /**
   * Sends immediately, also after a stop. Resolves when all queued answers are counted or rejected.
   * @throws SkilltraceError TIMEOUT, ABORTED, STORE_FAILED, or the error that stopped the queue
   */
  flush(options: WaitOptions = {}): Promise<void> {
    return this.#tracker.flush(options);
  }

  /**
   * Rejects further answers with CLOSED, and sends the queued ones for up to `timeoutMs` (default 10,000). The
   * rest stays in the store, or goes to `onUndelivered` without a store.
   * @returns number of answers left in the store
   * @throws SkilltraceError STORE_FAILED
   */
  close({ timeoutMs = defaultCloseMs, signal }: WaitOptions = {}): Promise<number> {
    return this.#tracker.close({ timeoutMs, signal });
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}

const logUndelivered = ({ event_id }: IdentifiedAnswer, error: SkilltraceError): void =>
  console.error(`Skilltrace: answer ${event_id} was not delivered: ${error.code} ${error.message}`);

const logStopped = (error: SkilltraceError): void =>
  console.error(`Skilltrace: sending stopped until the next flush: ${error.code} ${error.message}`);
